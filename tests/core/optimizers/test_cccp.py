"""Between the rounds of the concave-convex procedure: multipliers are brought within new bounds; and parts of the
classes.
"""

from typing import Any

import numpy as np
import pytest

from core.engine.requests import KernelSums
from core.kernels.cache import RowCache
from core.kernels.function import Kernel
from core.kernels.gram import Gram
from core.optimizers.cccp import move_into_bounds
from core.optimizers.smo import DualTerms, Multipliers
from core.validation.folds import evenly_spaced
from tests.core.kernels.rows import Alone
from tests.core.problems import random_rows


def run(cache: RowCache, multipliers: Multipliers, terms: DualTerms) -> None:
    """Answer the one request that there may be as a Scheduler does."""
    steps = move_into_bounds(cache, multipliers, terms)
    answer: Any = None
    try:
        while True:
            request = steps.send(answer)
            assert isinstance(request, KernelSums)
            answer = cache.weighted_sum(request.positions, request.weights)
    except StopIteration:
        return


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("free", [False, True])
def test_new_bounds_are_obeyed_and_the_sum_stays_zero(seed: int, free: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 30
    cache = RowCache(Gram(random_rows(rng, n, 8), Kernel("rbf", 0.5)), 1 << 20, Alone(), lambda: None)
    alpha = rng.standard_normal(n) * 3
    alpha -= alpha.mean()
    multipliers = Multipliers(alpha.copy(), cache.weighted_sum(np.arange(n), alpha))
    lower, upper = -rng.random(n), rng.random(n)
    if free:
        lower[-1], upper[-1] = -np.inf, np.inf
    terms = DualTerms(lower, upper.copy(), upper, np.sign(rng.standard_normal(n)), np.ones(n))
    run(cache, multipliers, terms)
    assert (multipliers.alpha >= lower - 1e-12).all()
    assert (multipliers.alpha <= upper + 1e-12).all()
    assert abs(multipliers.alpha.sum()) < 1e-9
    np.testing.assert_allclose(multipliers.kernel_sums, cache.weighted_sum(np.arange(n), multipliers.alpha), atol=1e-9)
    if free:
        np.testing.assert_array_equal(multipliers.alpha[:-1], np.clip(alpha, lower, upper)[:-1])


def test_multipliers_within_the_bounds_stay(rng: np.random.Generator) -> None:
    cache = RowCache(Gram(random_rows(rng, 6, 4), Kernel("linear")), 1 << 20, Alone(), lambda: None)
    alpha = np.array([1.0, -1.0, 0.5, -0.5, 0.0, 0.0])
    multipliers = Multipliers(alpha.copy(), np.zeros(6))
    run(cache, multipliers, DualTerms(*(np.full(6, value) for value in (-2.0, 2.0, 2.0, 1.0, 1.0))))
    np.testing.assert_array_equal(multipliers.alpha, alpha)
    np.testing.assert_array_equal(multipliers.kernel_sums, 0)


@pytest.mark.parametrize(("share", "counts"), [(0.1, (2, 8)), (0.001, (1, 1)), (1.0, (20, 80))])
def test_a_part_has_its_share_of_each_class(share: float, counts: tuple[int, int]) -> None:
    y = np.where(np.arange(100) % 5 == 0, 1.0, -1.0)
    chosen = evenly_spaced(y, lambda count: max(1, round(share * count)))
    assert (int((y[chosen] > 0).sum()), int((y[chosen] < 0).sum())) == counts
    assert (np.diff(chosen) > 0).all()
