"""The convex step against Clarabel on random problems."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from core.engine.requests import KernelRows, Phase, Report
from core.kernels.function import Kernel
from core.optimizers.smo import DualTerms, Multipliers, SmoResult, maximise
from core.problem import Status
from tests.core.kernels.rows import cache_of, whole
from tests.core.problems import Array, random_rows, rows_of
from tests.reference.kernel import solve_dual

RBF = Kernel("rbf", 0.4)
REPORT = Report(Phase(), 0, 0.0, None, 0.0)


def run(steps: Generator[Any, Any, SmoResult]) -> SmoResult:
    """Answer all requests, to the end."""
    results: list[SmoResult] = []

    def whole_way() -> Generator[Any, Any, None]:
        results.append((yield from steps))

    for request in whole_way():
        if isinstance(request, KernelRows):
            request.cache.fetch(request.positions)
    return results[0]


def random_terms(rng: np.random.Generator, n: int, knots: bool) -> DualTerms:
    """Bounds of the ramp loss; with knots some points stand for an unlabeled document and its copy."""
    y, C = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.uniform(0.5, 3.0, n)
    beta = np.where(rng.random(n) < 0.3, C, 0.0)
    low, high = np.where(y > 0, -beta, beta - C), np.where(y > 0, C - beta, beta)
    terms = DualTerms(low, high.copy(), high, y, y.copy())
    if not knots:
        return terms
    twice = rng.random(n) < 0.5
    side = rng.integers(0, 3, n)
    plus, minus = np.where(side == 1, C, 0.0), np.where(side == 2, C, 0.0)
    return DualTerms(
        np.where(twice, -plus - (C - minus), terms.lower),
        np.where(twice, minus - plus, terms.knot),
        np.where(twice, C - plus + minus, terms.upper),
        np.where(twice, 1.0, terms.below),
        np.where(twice, -1.0, terms.above),
    )


def exact(K: Array, terms: DualTerms) -> tuple[Array, float, float]:
    """α, its objective and b by Clarabel, each piece of a term being a variable of its own."""
    n = len(K)
    slopes, zero = np.concatenate([terms.below, terms.above]), np.zeros(n)
    dual = solve_dual(
        np.tile(K, (2, 2)),
        slopes,
        np.concatenate([terms.lower, zero]),
        np.concatenate([terms.knot, terms.upper - terms.knot]),
    )
    return dual.alpha[:n] + dual.alpha[n:], dual.objective, dual.b


def value(K: Array, terms: DualTerms, alpha: Array) -> float:
    below = np.minimum(alpha, terms.knot)
    return float(terms.below @ below + terms.above @ (alpha - below) - 0.5 * alpha @ K @ alpha)


@pytest.mark.parametrize("most_bytes", [2**30, 0])
@pytest.mark.parametrize("knots", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_maximum_is_clarabels(seed: int, knots: bool, most_bytes: int) -> None:
    rng = np.random.default_rng(seed)
    cache = cache_of(random_rows(rng, 90, 5, 0.7), RBF, most_bytes)
    terms, multipliers = random_terms(rng, 90, knots), Multipliers.zero(90)
    multipliers.alpha[:] = feasible(terms)
    multipliers.kernel_sums[:] = whole(cache.gram) @ multipliers.alpha
    found = run(maximise(cache, terms, multipliers, 1e-6, REPORT))
    K = whole(cache.gram)
    alpha, objective, b = exact(K, terms)
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e-6
    assert multipliers.alpha.sum() == pytest.approx(0, abs=1e-9)
    assert np.all(multipliers.alpha >= terms.lower)
    assert np.all(multipliers.alpha <= terms.upper)
    assert value(K, terms, multipliers.alpha) == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(K @ multipliers.alpha + found.intercept, K @ alpha + b, atol=1e-4)
    # a row that is computed again in another block may differ in its last float32 digit
    np.testing.assert_allclose(multipliers.kernel_sums, K @ multipliers.alpha, atol=5e-6)


def feasible(terms: DualTerms) -> Array:
    """A point that obeys the constraints."""
    alpha = np.clip(np.zeros(len(terms.lower)), terms.lower, terms.upper)
    for r in range(len(alpha)):
        alpha[r] = np.clip(alpha[r] - alpha.sum(), terms.lower[r], terms.upper[r])
    assert abs(alpha.sum()) < 1e-12
    return alpha


@pytest.mark.parametrize("seed", range(4))
def test_a_warm_start_ends_at_the_same_and_sooner(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cache = cache_of(random_rows(rng, 120, 6, 0.7), RBF)
    y = np.where(rng.random(120) < 0.5, 1.0, -1.0)

    def hinge(C: float) -> DualTerms:
        low, high = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
        return DualTerms(low, high.copy(), high, y, y.copy())

    warm = Multipliers.zero(120)
    run(maximise(cache, hinge(1.0), warm, 1e-5, REPORT))
    again = run(maximise(cache, hinge(1.0), warm.copy(), 1e-5, REPORT))
    assert again.steps == 0
    moved = run(maximise(cache, hinge(1.2), warm, 1e-5, REPORT))
    cold = Multipliers.zero(120)
    from_zero = run(maximise(cache, hinge(1.2), cold, 1e-5, REPORT))
    assert moved.steps < from_zero.steps
    K = whole(cache.gram)
    assert value(K, hinge(1.2), warm.alpha) == pytest.approx(value(K, hinge(1.2), cold.alpha), rel=1e-6)


def test_a_pair_that_violates_by_a_last_digit_is_fetched() -> None:
    """Points that are like no other: the slopes 1 and 0.999 differ by a digit more than the tolerance of 0.001."""
    y = np.array([-1.0, 1.0, 1.0, 1.0, -1.0])
    cache = cache_of(rows_of(np.diag(np.arange(1.0, 6.0))), Kernel("rbf", 1e3))
    bounds = np.where(y > 0, 0.0, -1e-3), np.where(y > 0, 1e-3, 0.0)
    terms = DualTerms(bounds[0], bounds[1].copy(), bounds[1], y, y.copy())
    assert run(maximise(cache, terms, Multipliers.zero(5), 1e-3, REPORT)).gap <= 1e-3
