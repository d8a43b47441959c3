"""Intervals of proportions, and promises of precision."""

import numpy as np
import pytest
from scipy.stats import beta

from core.evaluation.proportions import Promise, clopper_pearson, fewest_labels, promise


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
    found = promise(confidences, np.arange(200) < 100, 0.95)
    assert found is not None
    assert found.threshold is not None
    assert 100 <= found.labels < 110
    assert found.threshold == confidences[found.labels]


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
