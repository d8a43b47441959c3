"""Each source of evidence for a fraction, alone."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from scipy.stats import beta

from core.selection import log_evidence
from core.selection.log_evidence import LabelCounts
from core.selection.posterior import fine_grid, grid_around, grid_centre, log_mean, posterior_of

GRID = expit(np.linspace(-4, 4, 161))
NO_COUNTS, UNLIKELY = LabelCounts(0, 0, 0, 0, 60), LabelCounts(0, 0, 20, 30, 60)


@pytest.mark.parametrize(
    ("counts", "balanced", "planned"),
    [
        ([5, 5], True, True),
        ([9, 11], True, True),
        ([50, 60], True, True),
        ([10, 9, 10], True, True),
        ([12, 8], False, False),
        ([1, 19], False, False),
        ([10, 10, 25], False, False),
        ([10, 10, 25, 10], False, True),
        ([10, 10, 3, 10], False, True),
        ([4, 5, 12, 5, 4, 4], False, True),
        ([10, 20, 25, 10], False, False),
        ([2, 1, 30, 1, 2], False, False),
        ([50, 43, 50, 8, 28, 36, 13, 38], False, True),
        ([50, 43, 49, 8, 28, 36, 13, 38], False, False),
        ([47, 43, 47, 8, 28, 36, 13, 38], False, False),
        ([47, 47, 47, 8, 28, 36, 13, 38], False, True),
        ([8, 3, 8, 5, 1], False, False),
        ([8, 10, 11, 9, 12, 10, 10, 9, 10, 11], False, True),
        ([8, 10, 11, 9, 12, 10, 10, 9, 10, 40], False, True),
        ([1, 2, 2, 3, 2, 2, 4, 2, 2, 2], False, True),
        ([6, 10, 13, 9, 15, 8, 12, 5, 10, 12], False, False),
    ],
)
def test_equal_counts_of_all_classes_but_one_or_of_several_largest_are_a_plan(
    counts: list[int], balanced: bool, planned: bool
) -> None:
    assert log_evidence.is_balanced(np.array(counts)) == balanced
    assert log_evidence.is_planned(np.array(counts)) == planned


@pytest.mark.parametrize("per_class", [5, 10, 40])
def test_even_labels_stay_a_plan_where_a_few_are_wrong(per_class: int) -> None:
    """5 % of the labels of twenty classes, drawn anew for each seed; and random samples of Zipf's sizes are none."""
    sizes = 1 / np.arange(1, 21) ** 0.8
    for seed in range(50):
        rng = np.random.default_rng(seed)
        told = np.repeat(np.arange(20), per_class)
        told[rng.choice(len(told), per_class, replace=False)] = rng.integers(0, 20, per_class)
        assert log_evidence.is_planned(np.bincount(told, minlength=20))
        assert not log_evidence.is_planned(rng.multinomial(20 * per_class, sizes / sizes.sum()))


def test_two_classes_with_as_many_labels_by_chance_are_no_plan() -> None:
    sizes = 1 / np.arange(1, 11) ** 0.5
    samples = np.random.default_rng(0).multinomial(200, sizes / sizes.sum(), 1000)
    assert np.mean([log_evidence.is_planned(counts) for counts in samples]) < 0.01


def test_a_random_sample_of_even_classes_is_seldom_taken_for_a_plan() -> None:
    """As often as the quantile says; of all classes but one, chance is more often even."""
    samples = np.random.default_rng(0).multinomial(100, [0.05] * 20, 1000)
    assert 0.02 < np.mean([log_evidence.is_planned(counts) for counts in samples]) < 0.1


def test_that_the_only_label_of_a_class_is_there_says_nothing() -> None:
    """Without it there would be no training; where other labels are of the class, too, it says that there is some."""
    rare = expit(np.linspace(-9, -6, 20))
    alone, beside = (log_evidence.from_sample(rare, LabelCounts(1, 20, 0, 0, n_labeled)) for n_labeled in (20, 26))
    np.testing.assert_allclose(alone, -np.log(20), atol=0.03)
    np.testing.assert_allclose(beside, np.log(rare), atol=0.06)
    unknown = log_evidence.sample_log_odds(rare, LabelCounts(0, 0, 1, 20, 20))
    np.testing.assert_allclose(unknown - unknown[0], alone - alone[0])
    several = np.exp(log_evidence.from_sample(GRID, LabelCounts(3, 20, 0, 0, 20)))
    both = 1 - GRID**20 - (1 - GRID) ** 20
    np.testing.assert_allclose(several * both, GRID**3 * (1 - GRID) ** 17)


def test_a_random_sample_makes_the_posterior_of_a_fraction() -> None:
    """For two classes whose logit may be any: Beta(3, 17)."""
    posterior = posterior_of(GRID, log_evidence.from_sample(GRID, LabelCounts(3, 20, 0, 0, 60)))
    known = beta(3, 17)
    assert posterior.mean == pytest.approx(known.mean(), abs=2e-3)
    assert posterior.variance == pytest.approx(known.var(), rel=0.05)


def test_no_counts_say_nothing() -> None:
    wide = expit(np.linspace(-12, 12, 400))
    posterior = posterior_of(wide, log_evidence.from_sample(wide, NO_COUNTS))
    assert posterior.mean == pytest.approx(0.5, abs=0.01)
    assert posterior.is_guess
    assert not posterior_of(wide, log_evidence.from_sample(wide, LabelCounts(20, 40, 0, 0, 60))).is_guess


def test_counts_of_unknown_draw_are_a_mixture_of_a_sample_and_of_a_choice() -> None:
    """Against SciPy's laws: binomial, and beta-binomial."""
    chosen = stats.betabinom(20, log_evidence.CHOSEN, log_evidence.CHOSEN).pmf(3)
    found = log_evidence.from_counts(log_evidence.sample_log_odds(GRID, LabelCounts(0, 0, 3, 20, 60)))
    np.testing.assert_allclose(found, np.log(1 + stats.binom(20, GRID).pmf(3) / chosen), atol=1e-9)
    np.testing.assert_allclose(log_evidence.sample_log_odds(GRID, NO_COUNTS), 0.0, atol=1e-12)


def test_counts_of_unknown_draw_do_not_outweigh_what_the_documents_say() -> None:
    """Two thirds of 30 labels are positive, a tenth of the documents is predicted to be: as a sample, the labels would
    drag the fraction along.
    """
    predicted = log_evidence.from_prediction(GRID, 0.1, 0.3)
    sampled = predicted + log_evidence.from_sample(GRID, LabelCounts(20, 30, 0, 0, 60))
    unknown = predicted + log_evidence.from_counts(log_evidence.sample_log_odds(GRID, UNLIKELY))
    assert posterior_of(GRID, sampled).mean > 0.3
    assert posterior_of(GRID, unknown).mean < 0.15


def test_the_mean_of_what_is_known_by_its_logarithm() -> None:
    evidence = log_evidence.from_sample(GRID, LabelCounts(3, 20, 0, 0, 60))
    assert log_mean(evidence, np.log(GRID)) == pytest.approx(np.log(posterior_of(GRID, evidence).mean), abs=1e-3)


@pytest.mark.parametrize("error", [0.3, 2.0])
def test_a_prediction_is_likeliest_where_it_is(error: float) -> None:
    """Against SciPy's law of Student."""
    evidence = log_evidence.from_prediction(GRID, 0.3, error)
    assert GRID[np.argmax(evidence)] == pytest.approx(0.3, abs=0.02)
    oracle = stats.t(3).logpdf((logit(GRID) - logit(0.3)) / error)
    np.testing.assert_allclose(evidence - evidence[0], oracle - oracle[0], atol=1e-9)


def test_a_prediction_that_may_say_nothing_rules_nothing_out() -> None:
    """Against the mixture of SciPy's laws: that of Student, and any logit within the bounds."""
    evidence, width = log_evidence.from_prediction(GRID, 0.3, 0.5, 0.25), 2 * logit(0.99)
    oracle = np.log(0.75 / 0.5 * stats.t(3).pdf((logit(GRID) - logit(0.3)) / 0.5) + 0.25 / width)
    np.testing.assert_allclose(evidence, oracle, atol=1e-9)


@pytest.mark.parametrize("error", [0.3, 2.0])
@pytest.mark.parametrize("predicted", [0.0, 1.0])
def test_a_prediction_of_nothing_rules_nothing_out(predicted: float, error: float) -> None:
    assert np.isfinite(log_evidence.from_prediction(GRID, predicted, error)).all()


def test_labels_left_out_speak_by_their_likelihood_or_by_their_count() -> None:
    """What the one rules out the other may allow, however likely all labels are by either."""
    likelihood, count = -50.0 * (GRID - 0.5) ** 2, -200.0 * (GRID - 0.2) ** 2
    either = log_evidence.likelihood_or_count(likelihood - 30.0, count + 3.0)
    oracle = np.logaddexp(likelihood - likelihood.max(), count - count.max())
    np.testing.assert_allclose(either, oracle, atol=1e-12)


def test_held_out_labels_are_against_what_gets_them_wrong() -> None:
    y = np.array([1.0, 1.0, -1.0, -1.0])
    right, half, wrong = log_evidence.from_held_out(np.array([y, [1.0, 1.0, 1.0, 1.0], -y]), y)
    assert right > half > wrong


def test_scores_that_tell_nothing_rule_little_out(rng: np.random.Generator) -> None:
    """However large they are: the fraction at which all labels left out are positive, against that at which half of
    either class are.
    """
    y = np.repeat([1.0, -1.0], [10, 30])
    scores = 2 * rng.standard_normal(40)
    everything, half = log_evidence.from_held_out(np.array([scores + 2, scores]), y)
    assert 0 < half - everything < 4


def test_scores_that_hardly_tell_classes_apart_rule_no_fraction_out(rng: np.random.Generator) -> None:
    """Whatever fraction is asked: sure, and wrong, scores are no evidence."""
    y, noise = np.repeat([1.0, -1.0], [10, 20]), 2 * rng.standard_normal(30)
    evidence = log_evidence.from_held_out(np.linspace(-1.5, 2.5, 9)[:, None] + noise, y)
    assert np.ptp(evidence) < 6


def test_no_held_out_label_counts_for_more_than_one() -> None:
    """Two positive labels among forty weigh two, and all negative ones together as much."""
    y = np.repeat([1.0, -1.0], [2, 38])
    nothing = log_evidence.from_held_out(np.zeros((1, 40)), y)
    assert nothing[0] == pytest.approx(-log_evidence.HELD_OUT_WORTH * 4 * np.log(2))


def test_many_labels_left_out_are_worth_no_more_than_forty() -> None:
    """With many labels their common error, a bias, is larger than their random error."""
    worths = [
        -log_evidence.from_held_out(np.zeros((1, 2 * n)), np.repeat([1.0, -1.0], n))[0] / np.log(2)
        for n in (5, 10, 20, 500)
    ]
    assert worths == pytest.approx([20, 40, 40, 40])


def test_the_grid_surrounds_its_centre() -> None:
    grid = grid_around(0.2)
    assert np.all(np.diff(grid) > 0)
    assert grid[len(grid) // 2] == pytest.approx(0.2)
    assert grid[0] < 0.02
    assert grid[-1] > 0.7


def test_the_fine_grid_spans_a_grid_evenly() -> None:
    grid = grid_around(0.2)
    fine = fine_grid(grid)
    assert fine[[0, -1]] == pytest.approx(grid[[0, -1]])
    steps = np.diff(logit(fine))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)


def test_the_centre_lies_between_labels_and_prediction() -> None:
    assert 0.1 < grid_centre(0.1, LabelCounts(10, 20, 0, 0, 60)) < 0.5
    assert 0.0 < grid_centre(0.0, LabelCounts(1, 20, 0, 0, 60)) < 0.1


def test_numbers_of_labels_that_are_no_sample_do_not_move_the_centre() -> None:
    assert 0.1 < grid_centre(0.1, UNLIKELY) == grid_centre(0.1, NO_COUNTS) < 0.5


def scored(n: int, share: float, seed: int = 0, gap: float = 3.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of labels, as many of either class, by solutions with these fractions of positive documents; the true
    share is ``share``.
    """
    rng = np.random.default_rng(seed)
    truth, labels = rng.random(20_000) < share, np.repeat([False, True], n)
    documents, labeled = rng.standard_normal(20_000) + gap * truth, rng.standard_normal(2 * n) + gap * labels
    fractions = np.array([0.02, 0.05, 0.1, 0.2, 0.4])
    thresholds = np.quantile(documents, 1 - fractions)
    return fractions, labeled - thresholds[:, None], np.where(labels, 1.0, -1.0)


def test_the_adjusted_count_finds_the_fraction_where_a_threshold_midway_does_not() -> None:
    fractions, scores, y = scored(200, 0.1)
    counted = log_evidence.from_adjusted_count(fractions, log_evidence.rates_above(scores > 0, y))
    assert fractions[np.argmax(counted)] == 0.1
    assert counted.max() > -2.0 > -20.0 > counted[-1]
    assert fractions[np.argmax(log_evidence.from_held_out(scores, y))] == 0.2, (
        "the likelihood prefers even mistakes of both classes"
    )


def test_few_labels_say_less_of_the_count() -> None:
    spans = []
    for n in (5, 50, 500):
        fractions, scores, y = scored(n, 0.1)
        spans.append(np.ptp(log_evidence.from_adjusted_count(fractions, log_evidence.rates_above(scores > 0, y))))
    assert spans == sorted(spans)


def test_the_adjusted_count_is_normal_about_what_the_rates_expect() -> None:
    y, scores = np.repeat([1.0, -1.0], [40, 400]), np.repeat([1.0, -1.0], [40, 400])[None, :]
    found = log_evidence.from_adjusted_count(np.array([0.5]), log_evidence.rates_above(scores > 0, y))
    rates = [(40.5, 41.0), (0.5, 401.0)]
    own, others = (above / count for above, count in rates)
    variances = [share * (1 - share) / (count + 1) for share, (_, count) in zip((own, others), rates, strict=True)]
    off = 0.5 * own + 0.5 * others - 0.5
    assert found[0] == pytest.approx(-off * off / (0.25 * sum(variances)))
