"""The class fractions of three classes and more: answers counted, and numbers of labels."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import dirichlet_multinomial, multinomial

from core.selection.answers import CountedAnswers, adjust_answers, count_answers, posterior_of_classes
from core.selection.log_evidence import log_polya

NOTHING = np.zeros(3, np.int64)


def answers(fractions: list[float], kappa: float = 1.0) -> CountedAnswers:
    return CountedAnswers(np.array(fractions), kappa, np.ones(len(fractions)), np.zeros(len(fractions), np.int64))


def zipf(n_classes: int) -> NDArray[np.float64]:
    sizes = 1 / np.arange(1, n_classes + 1) ** 1.2
    return np.asarray(sizes / sizes.sum())


def test_answers_count_less_where_a_model_contradicts_with_which_they_mostly_agree() -> None:
    own, other = np.repeat([0, 0, 1, 2], [400, 200, 100, 300]), np.repeat([0, 1, 1, 2], [400, 200, 100, 300])
    found = count_answers(own, other, 3, as_good=True)
    kappa = (0.8 - (0.6 * 0.4 + 0.1 * 0.3 + 0.3 * 0.3)) / (1 - (0.6 * 0.4 + 0.1 * 0.3 + 0.3 * 0.3))
    assert found.kappa == pytest.approx(kappa)
    np.testing.assert_allclose(
        found.fractions, np.array([601 - 200 * kappa, 101, 301]) / (1003 - 200 * kappa), rtol=1e-12
    )
    np.testing.assert_allclose(found.shared, [2 / 3, 1 / 3, 1])
    worse = count_answers(own, other, 3, as_good=False)
    np.testing.assert_allclose(worse.fractions, np.array([601.0, 101, 301]) / 1003)
    assert worse.kappa == found.kappa


def test_labels_left_out_adjust_answers() -> None:
    """A model that takes every second document of the largest class for one of another."""

    def answered(truth: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.where((truth == 0) & (np.arange(len(truth)) % 2 == 0), 1, truth)

    own, share = answered(np.repeat([0, 1, 2], [700, 200, 100])), np.array([351, 551, 101]) / 1003
    counted = count_answers(own, own, 3, as_good=True)._replace(kappa=0.4)
    np.testing.assert_allclose(counted.fractions, share)
    off = []
    for each in (0, 8, 40, 200):
        truth = np.repeat([0, 1, 2], each)
        found = adjust_answers(counted, own, truth, answered(truth)).centre
        # the mode of the posterior: no class gains more than another
        matrix = 10 * (0.4 * np.eye(3) + 0.6 * share) + each * np.array([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]])
        matrix /= 10 + each
        gains = 3 * each * matrix @ (share / (found @ matrix)) + counted.prior / found
        assert gains == pytest.approx(np.full(3, gains[0]))
        off.append(abs(found - [0.7, 0.2, 0.1]).sum() / 2)
    assert off[0] == pytest.approx(0.35, abs=0.01)
    assert off[0] > off[1] > off[2] > 0.1 > off[3]


def test_models_that_agree_by_chance_say_nothing(rng: np.random.Generator) -> None:
    own, other = rng.choice(3, 20_000, p=[0.7, 0.2, 0.1]), rng.choice(3, 20_000, p=[0.7, 0.2, 0.1])
    assert count_answers(own, other, 3, as_good=True).kappa < 0.02
    assert count_answers(own, own, 3, as_good=True).kappa == pytest.approx(1)
    assert count_answers(np.zeros(9, np.intp), np.zeros(9, np.intp), 3, as_good=True).kappa == 0


def test_the_urn_is_that_of_scipy() -> None:
    prior, counts = np.array([0.5, 2.0, 3.5]), np.array([4, 0, 7])
    in_any_order = dirichlet_multinomial(prior, np.array(11)).logpmf(counts)
    orders = multinomial(11, [1 / 3] * 3).logpmf(counts) + 11 * np.log(3)
    assert log_polya(prior, counts) == pytest.approx(in_any_order - orders)


@pytest.mark.parametrize(("kappa", "worth"), [(0.0, 1.0), (0.2, 15.0), (0.5, 60.0), (0.8, 240.0), (1.0, 600.0)])
def test_answers_are_worth_as_many_labels_as_the_models_agree(kappa: float, worth: float) -> None:
    assert answers([0.6, 0.3, 0.1], kappa).prior.sum() == pytest.approx(worth)


def test_without_a_sample_the_answers_are_the_estimate() -> None:
    found = posterior_of_classes(answers([0.6, 0.3, 0.1]), NOTHING, NOTHING)
    np.testing.assert_allclose(found.means, [0.6, 0.3, 0.1], atol=0.001)
    assert not found.sampled
    idle = posterior_of_classes(answers([0.6, 0.3, 0.1], kappa=0.0), NOTHING, NOTHING)
    np.testing.assert_allclose(idle.means, 1 / 3)
    assert (idle.deviations > 0.1).all()


@pytest.mark.parametrize("random", [NOTHING, np.array([3, 1, 1])])
def test_labels_that_a_model_chose_count_more_the_less_it_knew(random: NDArray[np.int64]) -> None:
    """What it was unsure of is a random sample if it knew nothing, and hardly says anything if it knew most."""
    moved = []
    for kappa in (0.0, 0.5, 0.9):
        said = answers([0.6, 0.3, 0.1], kappa)
        without = posterior_of_classes(said, random, NOTHING).means
        found = posterior_of_classes(said._replace(chosen=np.array([0, 0, 60])), random, NOTHING).means
        moved.append(found[2] - without[2])
    assert moved[0] > 0.35
    assert moved[0] > moved[1] > moved[2]
    assert 0 < moved[2] < 0.01


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_many_random_labels_are_believed_whatever_the_answers(known: bool, seed: int) -> None:
    """200 labels of 20 uneven classes, the largest with 36 %, against answers with even classes."""
    true = zipf(20)
    counts = np.random.default_rng(seed).multinomial(200, true)
    nothing = np.zeros(20, np.int64)
    found = posterior_of_classes(answers([0.05] * 20), *((counts, nothing) if known else (nothing, counts)))
    assert found.sampled
    assert np.abs(found.means - true).sum() <= np.abs(counts / 200 - true).sum() + 0.03
    assert found.means[0] == pytest.approx(counts[0] / 200, abs=0.03)
    assert found.deviations[0] == pytest.approx(np.sqrt(true[0] * (1 - true[0]) / 200), rel=0.2)


def test_numbers_that_differ_by_chance_alone_are_even() -> None:
    counts = np.random.default_rng(0).multinomial(100, [0.05] * 20)
    found = posterior_of_classes(answers(zipf(20).tolist()), counts, np.zeros(20, np.int64))
    assert np.abs(found.means - 0.05).sum() < 0.6 * np.abs(counts / 100 - 0.05).sum()


@pytest.mark.parametrize("seed", range(5))
def test_wrong_answers_hardly_harm_a_random_sample(seed: int) -> None:
    """Beside the numbers of labels with half a label added to each class."""
    true = zipf(8)
    counts = np.random.default_rng(seed).multinomial(60, true)
    found = posterior_of_classes(answers(true[::-1].tolist(), kappa=0.5), counts, np.zeros(8, np.int64))
    assert np.abs(found.means - true).sum() <= np.abs((counts + 0.5) / 64 - true).sum() + 0.07


@pytest.mark.parametrize("kappa", [0.0, 0.7, 0.95])
def test_random_labels_move_the_answers_little_by_little(kappa: float) -> None:
    """The more of them the further, without a leap; 30 settle the fractions."""
    said = answers([0.6, 0.3, 0.1], kappa)
    found = [posterior_of_classes(said, np.array([2, 1, 2]) * factor, NOTHING) for factor in range(31)]
    off = np.array([np.abs(each.means - [0.4, 0.2, 0.4]).sum() / 2 for each in found])
    assert (np.diff(off[1:]) < 0).all()
    assert np.abs(np.diff(off[1:])).max() < 0.1
    assert off[-1] < 0.02
    assert [each.sampled for each in found] == [5 * factor >= 30 for factor in range(31)]


def test_anybodys_numbers_yield_to_answers() -> None:
    """Three classes: a plan of so many labels cannot be told from chance by the numbers alone."""
    fractions = [0.05, 0.05, 0.9]
    found = posterior_of_classes(answers(fractions), NOTHING, np.array([30, 2, 1]))
    sampled = posterior_of_classes(answers(fractions), np.array([30, 2, 1]), NOTHING)
    assert found.means[0] < sampled.means[0]
    assert found.means.sum() == pytest.approx(1)
