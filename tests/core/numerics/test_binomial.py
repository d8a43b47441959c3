"""The binomial law, against SciPy: tails, intervals, tests, promises and the labels that they need."""

import numpy as np
import pytest
from scipy.stats import beta, binom, binomtest, norm

from core.numerics import binomial
from core.numerics.binomial import (
    LEAST_DISCORDANT,
    LEVEL,
    QUANTILE,
    QUARTILE,
    Promise,
    binomial_tail,
    clopper_pearson,
    fewest_labels,
    is_worse,
    labels_needed,
    promise,
    sign_test,
    wilson_interval,
)
from tests.there import there


@pytest.mark.parametrize("probability", [0.01, 1 / 3, 0.5, 0.97])
@pytest.mark.parametrize(("least", "n"), [(0, 4), (1, 1), (3, 9), (9, 9), (10, 9), (120, 300)])
def test_the_tail_of_the_binomial_distribution(least: int, n: int, probability: float) -> None:
    assert binomial_tail(least, n, probability) == pytest.approx(
        binom.sf(least - 1, n, probability), rel=1e-9, abs=1e-300
    )


def test_what_always_or_never_happens() -> None:
    assert [binomial_tail(2, 3, probability) for probability in (0.0, 1.0)] == [0.0, 1.0]


def test_the_quantile_is_that_of_the_level() -> None:
    assert norm.sf(QUANTILE) == pytest.approx(LEVEL)
    assert norm.sf(QUARTILE) == pytest.approx(0.25)


@pytest.mark.parametrize(("right", "total"), [(0, 4), (3, 7), (20, 20)])
def test_the_interval_of_wilson(right: int, total: int) -> None:
    expected = binomtest(right, total).proportion_ci(0.9, "wilson")
    assert wilson_interval(right / total, total, QUANTILE) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert wilson_interval(0, 0, QUANTILE) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (50, 50), (17, 1000)])
def test_the_interval_is_that_of_the_beta_distribution(successes: int, n: int) -> None:
    low, high = clopper_pearson(successes, n)
    assert low == pytest.approx(beta.ppf(0.025, successes, n - successes + 1) if successes else 0.0, abs=1e-9)
    assert high == pytest.approx(beta.ppf(0.975, successes + 1, n - successes) if successes < n else 1.0, abs=1e-9)


def test_nothing_is_known_without_a_sample() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)


def test_the_fewest_labels_are_just_enough() -> None:
    n = fewest_labels(0.95)
    assert n == 72
    confidences = np.linspace(1.0, 0.5, n)
    assert promise(confidences, np.ones(n, bool), 0.95) == Promise(None, n, 0)
    assert promise(confidences[1:], np.ones(n - 1, bool), 0.95) is None


def test_errors_among_the_unsure_leave_the_sure_ones() -> None:
    confidences = np.linspace(1.0, 0.5, 200)
    found = there(promise(confidences, np.arange(200) < 100, 0.95))
    assert 100 <= found.labels < 110
    assert there(found.threshold) == confidences[found.labels]


def test_equal_confidences_are_not_parted() -> None:
    confidences = np.repeat([0.9, 0.6], 100)
    found = promise(confidences, np.arange(200) < 100, 0.95)
    assert found == Promise(0.6, 100, 0)
    assert promise(np.ones(200), np.arange(200) < 150, 0.95) is None


@pytest.mark.parametrize("sharpness", [4.0, 8.0])
def test_the_promise_is_kept_in_nineteen_of_twenty_samples(sharpness: float) -> None:
    generator = np.random.default_rng(7)
    confidences = generator.uniform(0.5, 1.0, 20_000)
    right = generator.uniform(size=20_000) < 1 - (1 - confidences) ** (sharpness / 2)
    broken = given = 0
    for _ in range(400):
        sample = generator.choice(20_000, 150)
        found = promise(confidences[sample], right[sample], 0.95)
        if found is not None:
            given += 1
            trusted = confidences > (-1 if found.threshold is None else found.threshold)
            broken += right[trusted].mean() < 0.95
    assert given > 40
    assert broken <= 20 + 9  # a twentieth, and twice its standard deviation


@pytest.mark.parametrize(
    ("gained", "lost"), [(0, 5), (1, 4), (2, 14), (7, 7), (30, 51), (0, 0), (9, 0), (4_900, 5_100), (49_000, 51_000)]
)
def test_the_sign_test_is_the_exact_binomial_test(gained: int, lost: int) -> None:
    expected = binomtest(gained, gained + lost, alternative="less").pvalue if gained + lost else 1.0
    assert sign_test(gained, lost) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_a_few_are_no_evidence() -> None:
    assert not any(is_worse(0, lost) for lost in range(LEAST_DISCORDANT))
    assert is_worse(0, LEAST_DISCORDANT)
    assert sign_test(0, LEAST_DISCORDANT) < LEVEL < sign_test(0, LEAST_DISCORDANT - 1)


@pytest.mark.parametrize(
    ("gained", "lost", "worse"),
    [(5, 0, False), (9, 9, False), (3, 10, True), (4, 10, False), (5, 15, True), (9, 12, False)],
)
def test_worse_is_what_chance_does_not_allow(gained: int, lost: int, worse: bool) -> None:
    assert is_worse(gained, lost) is worse


@pytest.mark.parametrize(
    ("labels", "right", "by_chance", "further"),
    [
        (20, 9, 0.5, 0.75),
        (20, 13, 0.5, 0.65),
        (8, 2, 0.25, 0.625),
        (0, 0, 0.5, 1.0),
        (40, 20, 1 / 3, 0.5),
        (60, 10, 0.5, 0.9),
    ],
)
def test_the_labels_needed_are_the_first_number_that_is_not_chance(
    labels: int, right: int, by_chance: float, further: float
) -> None:
    needed = there(labels_needed(labels, right, by_chance, further))

    def p_value(n: int) -> float:
        return float(binomtest(right + round(further * (n - labels)), n, by_chance, alternative="greater").pvalue)

    assert p_value(needed) < 0.05
    assert all(p_value(n) >= 0.05 for n in range(max(1, labels), needed))


def test_without_any_gain_no_number_suffices() -> None:
    assert labels_needed(20, 10, 0.5, 0.5) is None
    assert labels_needed(20, 10, 0.5, 0.4) is None
    assert labels_needed(20, 20, 1.0, 1.0) is None


@pytest.mark.parametrize(
    ("labels", "right", "by_chance", "further"),
    [(20, 9, 0.5, 0.75), (20, 11, 0.5, 0.55), (30, 9, 0.3, 0.4), (100, 40, 0.5, 0.7)],
)
def test_large_numbers_are_near_the_exact_ones(
    monkeypatch: pytest.MonkeyPatch, labels: int, right: int, by_chance: float, further: float
) -> None:
    exact = there(labels_needed(labels, right, by_chance, further))
    monkeypatch.setattr(binomial, "_EXACT", 0)
    assert labels_needed(labels, right, by_chance, further) == pytest.approx(exact, rel=0.2)


def test_what_is_hardly_better_than_chance_takes_very_many() -> None:
    assert 20_000 < there(labels_needed(200, 101, 0.5, 0.505)) < 40_000
