"""Exponential and logarithm against the C library's, and the compiled ones against these, bit by bit."""

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from core.numerics import elementary
from core.numerics.compiled import exp_of, log_of
from tests.core.problems import Array

_RNG = np.random.default_rng(0)
POWERS = np.concatenate(
    [_RNG.uniform(-740, 709, 20_000), _RNG.standard_normal(20_000), [0.0, -0.0, 1.0, 709.78, -708.0, 1e-300]]
)
VALUES = np.concatenate(
    [
        np.exp(POWERS[:20_000]),
        _RNG.uniform(0.5, 2.0, 20_000),
        [1.0, np.nextafter(1, 2), np.nextafter(1, 0), 5e-324, 2.0**-1022],
    ]
)


def ulps(found: Array, true: Array) -> float:
    """The largest difference, in units in the last place."""
    return float((np.abs(found - true) / np.spacing(np.abs(true) + 1e-300)).max())


def test_the_exponential_is_within_a_unit_in_the_last_place() -> None:
    assert ulps(elementary.exp(POWERS), np.exp(POWERS)) <= 1.5


def test_the_logarithm_is_within_a_unit_in_the_last_place() -> None:
    assert ulps(elementary.log(VALUES), np.log(VALUES)) <= 1.5


def test_ends_of_their_ranges() -> None:
    np.testing.assert_array_equal(
        elementary.exp(np.array([np.inf, 800.0, -np.inf, -800.0, np.nan])), [np.inf, np.inf, 0.0, 0.0, np.nan]
    )
    np.testing.assert_array_equal(
        elementary.log(np.array([0.0, -1.0, np.inf, np.nan])), [-np.inf, np.nan, np.inf, np.nan]
    )


@njit(error_model="numpy")
def _compiled(powers: Array, values: Array, exponentials: Array, logarithms: Array) -> None:
    for i in range(len(powers)):
        exponentials[i] = exp_of(powers[i])
    for i in range(len(values)):
        logarithms[i] = log_of(values[i])


def test_compiled_loops_have_the_same_bits() -> None:
    exponentials, logarithms = np.empty_like(POWERS), np.empty_like(VALUES)
    _compiled(POWERS, VALUES, exponentials, logarithms)
    np.testing.assert_array_equal(exponentials, elementary.exp(POWERS))
    np.testing.assert_array_equal(logarithms, elementary.log(VALUES))


def test_what_is_made_of_them() -> None:
    fractions = np.array([1e-9, 0.1, 0.5, 0.99])
    np.testing.assert_allclose(elementary.logit(fractions), special.logit(fractions), rtol=1e-14, atol=1e-15)
    logits = np.array([-1e300, -800.0, -30.0, 0.0, 40.0, 1e300])
    np.testing.assert_allclose(elementary.expit(logits), special.expit(logits), rtol=1e-14, atol=1e-300)
    table = _RNG.standard_normal((7, 5)) * 50
    np.testing.assert_allclose(elementary.log_sum_exp(table, axis=1), special.logsumexp(table, axis=1), rtol=1e-14)
    np.testing.assert_allclose(elementary.log_add_exp(table[0], table[1]), np.logaddexp(table[0], table[1]), rtol=1e-14)
    assert elementary.logit_of(0.25) == pytest.approx(-np.log(3), rel=1e-15)


def test_normal_numbers_are_normal() -> None:
    drawn = elementary.standard_normal(np.random.default_rng(1), 20_000)
    assert drawn.shape == (20_000,)
    assert stats.kstest(drawn, "norm").pvalue > 0.01


def test_few_numbers_have_the_bits_of_many() -> None:
    few = np.array([elementary.exp(POWERS[i : i + 1])[0] for i in range(len(POWERS))])
    np.testing.assert_array_equal(few, elementary.exp(POWERS))


def test_arrays_of_any_shape() -> None:
    table = np.asfortranarray(_RNG.standard_normal((70, 90)))
    np.testing.assert_allclose(elementary.exp(table), np.exp(table), rtol=1e-15)
    np.testing.assert_allclose(elementary.exp(np.float64(0.0) * table[:0]), np.zeros((0, 90)))
