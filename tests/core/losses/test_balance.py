"""The balance of beliefs against SciPy's root finder, a plain bisection and plain formulas."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import entropy as scipy_entropy

from core.losses import balance
from core.losses.balance import balanced_probabilities, divergence, entropy, label_gains
from tests.calls import noted
from tests.core.problems import Array
from tests.reference import annealing as reference


def draw(seed: int, n: int = 30) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    gains, weights = np.empty(n), rng.random(n)
    label_gains(rng.standard_normal(n) * rng.choice([0.1, 1.0, 5.0]), gains)
    gains *= rng.choice([0.01, 1.0, 100.0])
    return gains, weights / weights.sum()


def test_gains_are_what_believing_costs() -> None:
    scores = np.random.default_rng(0).standard_normal(40) * 2
    gains = np.empty(40)
    label_gains(scores, gains)
    np.testing.assert_allclose(gains, reference.gains_of(scores, 1.0), rtol=1e-14)


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("fraction", [1e-4, 0.35, 0.5, 0.999])
@pytest.mark.parametrize("seed", range(4))
def test_beliefs_are_those_of_an_independent_root(seed: int, fraction: float, temperature: float) -> None:
    gains, weights = draw(seed)
    temperature *= np.abs(gains).max()
    p, multiplier = balanced_probabilities(gains, weights, fraction, temperature)
    assert weights @ p == pytest.approx(fraction, abs=1e-9)
    np.testing.assert_allclose(p, expit((multiplier - gains) / temperature), rtol=1e-9, atol=1e-300)
    span = gains.max() - gains.min() + 50 * temperature
    root = brentq(
        lambda v: weights @ expit((v - gains) / temperature) - fraction,
        gains.min() - span,
        gains.max() + span,
        xtol=1e-15,
        rtol=1e-14,
    )
    np.testing.assert_allclose(p, expit((root - gains) / temperature), atol=1e-6)
    np.testing.assert_allclose(p, reference.balanced(gains, weights, fraction, temperature), atol=1e-6)


@pytest.mark.parametrize("start", [None, -1e9, -1.0, 0.0, 3.0, 1e9, math.inf, math.nan])
def test_any_guess_of_the_multiplier_ends_at_the_same_beliefs(start: float | None) -> None:
    gains, weights = draw(5)
    expected = balanced_probabilities(gains, weights, 0.3, 0.2).positive
    np.testing.assert_allclose(balanced_probabilities(gains, weights, 0.3, 0.2, start).positive, expected, atol=1e-7)


def test_it_is_newton_that_finds_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bisection to the same accuracy takes 33 steps at the least."""
    calls = noted(monkeypatch, balance, "_probabilities", lambda *_: 1)
    for seed in range(30):
        gains, weights = draw(seed, 300)
        balanced_probabilities(gains, weights, 0.35, 0.05 * float(np.abs(gains).max()))
    assert 30 < len(calls) < 30 * 12


@pytest.mark.parametrize("gain", [-4.0, 0.0, 4.0])
@pytest.mark.parametrize("temperature", [1e-4, 1.0, 1e4])
def test_equal_rows_share_the_fraction(gain: float, temperature: float) -> None:
    p = balanced_probabilities(np.full(9, gain), np.full(9, 1 / 9), 0.2, temperature).positive
    np.testing.assert_allclose(p, 0.2, rtol=1e-9)


def test_equal_rows_share_what_the_others_leave() -> None:
    """Two certain rows, and four of one gain that cannot all be positive, however low the temperature."""
    gains = np.array([-3.0, 3.0, 0.5, 0.5, 0.5, 0.5])
    p = balanced_probabilities(gains, np.full(6, 1 / 6), 0.5, 1e-6).positive
    np.testing.assert_allclose(p, [1, 0, 0.5, 0.5, 0.5, 0.5], atol=1e-8)


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_at_its_ends_the_fraction_decides_alone(fraction: float) -> None:
    gains, weights = draw(1)
    np.testing.assert_array_equal(balanced_probabilities(gains, weights, fraction, 1.0).positive, fraction)


def test_entropy_and_divergence_are_the_plain_formulas() -> None:
    rng = np.random.default_rng(3)
    p, q, weights = rng.random(20), rng.random(20), rng.random(20)
    p[:3], q[0], q[1] = [0.0, 1.0, 0.0], 0.0, 1.0
    pairs, others = np.column_stack([p, 1 - p]), np.column_stack([q, 1 - q])
    assert entropy(p, weights) == pytest.approx(weights @ scipy_entropy(pairs, axis=1), rel=1e-12)
    assert divergence(p, q, weights) == pytest.approx(weights @ scipy_entropy(pairs, others, axis=1), rel=1e-12)
    even = np.full(20, 1 / 20)
    assert entropy(p, even) == pytest.approx(reference.entropy(p), rel=1e-12)
    assert divergence(p, q, even) == pytest.approx(reference.divergence(p, q), rel=1e-12)


@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_divergence_from_certainty_is_infinite_unless_it_stayed(certain: float) -> None:
    last, even = np.array([certain, 0.5]), np.array([0.5, 0.5])
    assert divergence(np.array([0.5, 0.5]), last, even) == math.inf
    assert divergence(last, last, even) == 0
