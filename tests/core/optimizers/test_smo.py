"""The convex step and its kernel rows: against Clarabel on random problems, and scikit-learn's kernels."""

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from core.documents.rows import SparseRows
from core.engine.kernel_requests import KernelRows
from core.engine.runner import Report
from core.kernels.cache import RowCache
from core.kernels.function import Kernel
from core.kernels.gram import Gram
from core.optimizers.smo import DualTerms, Multipliers, SmoResult, maximise
from core.problem.result import Status
from tests.core.problems import Array, dense_of, normal, random_rows, rows_of
from tests.reference.kernel import solve_dual, with_mean

RBF = Kernel("rbf", 0.4)
REPORT = Report("", 0, 0.0, None, 0.0)


class Alone:
    """A team of one."""

    n_threads = 1

    def side_by_side(self, works: Iterable[Callable[[], None]]) -> None:
        for work in works:
            work()


def cache_of(rows: SparseRows, kernel: Kernel, most_bytes: int = 2**30, weights: Array | None = None) -> RowCache:
    return RowCache(Gram(rows, kernel, weights), most_bytes, Alone(), lambda: None)


def run(steps: Generator[Any, Any, SmoResult]) -> SmoResult:
    """Answer what is asked for, to the end."""
    results: list[SmoResult] = []

    def whole_way() -> Generator[Any, Any, None]:
        results.append((yield from steps))

    for request in whole_way():
        if isinstance(request, KernelRows):
            request.cache.fetch(request.positions)
    return results[0]


def whole(gram: Gram) -> Array:
    out = np.empty((gram.n_points, gram.n_points), np.float32)
    gram.fill(np.arange(gram.n_points), out)
    return out.astype(np.float64)


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
    dual = solve_dual(np.tile(K, (2, 2)), slopes, np.concatenate([terms.lower, zero]), np.concatenate([terms.knot, terms.upper - terms.knot]))
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
    np.testing.assert_allclose(multipliers.kernel_sums, K @ multipliers.alpha, atol=1e-9 if most_bytes else 2e-6)


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


KERNELS: list[tuple[Kernel, Callable[[Array], Array]]] = [
    (Kernel("linear"), linear_kernel),
    (Kernel("rbf", 0.3), lambda X: rbf_kernel(X, gamma=0.3)),
    (Kernel("poly", 0.5, 3, 1.0), lambda X: polynomial_kernel(X, gamma=0.5, degree=3, coef0=1.0)),
    (Kernel("poly", 0.5, 2, 0.0), lambda X: polynomial_kernel(X, gamma=0.5, degree=2, coef0=0.0)),
]


@pytest.mark.parametrize(("kernel", "theirs"), KERNELS, ids=["linear", "rbf", "poly 3", "poly 2"])
@pytest.mark.parametrize(("d", "density"), [(7, 0.9), (400, 0.02), (1, 0.0)], ids=["dense", "sparse", "all empty"])
def test_rows_are_those_of_scikit_learn(kernel: Kernel, theirs: Callable[[Array], Array], d: int, density: float) -> None:
    rows = random_rows(np.random.default_rng(2), 60, d, density)
    np.testing.assert_allclose(whole(Gram(rows, kernel)), theirs(dense_of(rows)), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("d", "density"), [(7, 0.9), (400, 0.02)], ids=["dense", "sparse"])
def test_rows_of_a_part_of_a_matrix_are_its_own(d: int, density: float) -> None:
    """A view whose offsets do not start at 0."""
    rows = random_rows(np.random.default_rng(3), 60, d, density)
    np.testing.assert_allclose(whole(Gram(rows.between(20, 50), RBF)), rbf_kernel(dense_of(rows)[20:50], gamma=0.4), atol=2e-5)


def test_distances_far_from_the_origin_keep_their_digits() -> None:
    dense = np.random.default_rng(4).standard_normal((30, 3)) + 300.0
    rows = rows_of(dense)
    np.testing.assert_allclose(whole(Gram(rows, RBF)), rbf_kernel(dense_of(rows), gamma=0.4), atol=1e-3)


@pytest.mark.parametrize("most_bytes", [2**30, 0])
def test_the_mean_has_its_kernel_values(most_bytes: int) -> None:
    rng = np.random.default_rng(5)
    rows, weights = random_rows(rng, 70, 5, 0.8), np.concatenate([np.zeros(10), rng.random(60)])
    weights /= weights.sum()
    cache = cache_of(rows, RBF, most_bytes, weights)
    expected = with_mean(rbf_kernel(dense_of(rows), gamma=0.4), 10, weights[10:])  # the mean stands first there
    np.testing.assert_allclose(whole(cache.gram), np.roll(expected, -1, axis=(0, 1)), atol=2e-6)


@pytest.mark.parametrize("most_bytes", [2**30, 0])
def test_the_cache_holds_what_was_asked_for_and_forgets_the_oldest(most_bytes: int) -> None:
    rng = np.random.default_rng(6)
    cache = cache_of(random_rows(rng, 300, 5, 0.8), RBF, most_bytes)
    K = whole(cache.gram)
    for _ in range(200):
        wanted = np.sort(rng.choice(300, int(rng.integers(1, cache.batch_rows + 1)), replace=False))
        cache.fetch(wanted)
        assert not len(cache.missing(wanted))
        held = np.flatnonzero(cache.slots.slot_of >= 0)
        assert len(held) <= len(cache.slots.rows)
        assert len(set(cache.slots.slot_of[held])) == len(held)
        np.testing.assert_allclose(cache.slots.rows[cache.slots.slot_of[held]], K[held], atol=1e-6)
    weights = normal(rng, 300)
    np.testing.assert_allclose(cache.weighted_sum(np.arange(300), weights), K @ weights, atol=1e-4)
