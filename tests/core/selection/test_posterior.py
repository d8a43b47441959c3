"""Fractions of many classes: errors that they have in common, and a prior that they share."""

import numpy as np
import pytest
from numpy.typing import NDArray

from core.numerics.elementary import expit, logit
from core.selection.posterior import Posterior, shrunk, without_common_error


def posteriors(means: NDArray[np.float64], error: float) -> list[Posterior]:
    """With an error in logits."""
    return [Posterior(float(mean), float((error * mean * (1 - mean)) ** 2)) for mean in means]


def means_of(found: list[Posterior]) -> NDArray[np.float64]:
    return np.array([each.mean for each in found])


@pytest.mark.parametrize("seed", range(5))
def test_fractions_that_differ_by_their_errors_are_drawn_together(seed: int) -> None:
    noisy = expit(logit(np.full(20, 0.05)) + 0.4 * np.random.default_rng(seed).standard_normal(20))
    found = shrunk(posteriors(noisy, 0.4))
    assert logit(means_of(found)).std() < 0.5 * logit(noisy).std()
    assert (np.argsort(means_of(found)) == np.argsort(noisy)).all()
    assert all(each.variance < before.variance for each, before in zip(found, posteriors(noisy, 0.4), strict=True) if each.mean < before.mean)


def test_fractions_that_differ_by_more_stay() -> None:
    uneven = np.array([0.3, 0.05, 0.52, 0.004, 0.035, 0.04, 0.016, 0.035])
    np.testing.assert_allclose(means_of(shrunk(posteriors(uneven, 0.3))), uneven, rtol=0.02)


def test_what_is_known_stays_and_what_is_not_follows_the_others() -> None:
    means, errors = np.full(12, 0.08), np.full(12, 0.05)
    means[:2], errors[0] = 0.12, 1.0
    found = shrunk([Posterior(float(m), float((e * m * (1 - m)) ** 2)) for m, e in zip(means, errors, strict=True)])
    assert found[0].mean < 0.09
    assert found[1].mean > 0.115


def test_fractions_at_the_ends_are_finite() -> None:
    found = shrunk([Posterior(0.0, 0.0), Posterior(1.0, 0.0), Posterior(0.5, 1e-3)])
    assert np.isfinite([[each.mean, each.variance] for each in found]).all()


def test_an_error_that_all_have_is_taken_off_and_the_own_ones_stay() -> None:
    true = expit(logit(np.full(20, 0.05)) + 0.3 * np.random.default_rng(0).standard_normal(20))
    true /= true.sum()
    found = without_common_error(posteriors(expit(logit(true) - 1.7), 0.4))
    np.testing.assert_allclose(means_of(found), true, rtol=0.05)
    deviations = np.sqrt([each.variance for each in found]) / (means_of(found) * (1 - means_of(found)))
    np.testing.assert_allclose(deviations, 0.4)


def test_a_sum_above_one_is_lowered() -> None:
    found = means_of(without_common_error(posteriors(np.full(10, 0.2), 0.1)))
    assert found.sum() == pytest.approx(1, abs=0.05)
    assert np.ptp(found) == 0


def test_what_own_errors_explain_stays() -> None:
    given = posteriors(np.array([0.2, 0.3, 0.35]), 0.5)
    assert without_common_error(given) == given


def test_known_fractions_and_ends_are_finite() -> None:
    for means in ([0.0, 0.0, 1e-12], [1.0, 1.0, 1.0], [0.5, 0.5, 1.0]):
        found = without_common_error([Posterior(mean, 0.0) for mean in means])
        assert np.isfinite([[each.mean, each.variance] for each in found]).all()
        assert means_of(found).sum() == pytest.approx(1, abs=1e-6)
