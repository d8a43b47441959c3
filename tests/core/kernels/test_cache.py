"""The cache of kernel rows, and the weighted mean of points as one more point."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from core.kernels.function import Kernel
from tests.core.kernels.rows import cache_of, whole
from tests.core.problems import dense_of, normal, random_rows
from tests.reference.kernel import with_mean

RBF = Kernel("rbf", 0.4)


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
        # a row that is computed again in another block may differ in its last float32 digits
        np.testing.assert_allclose(cache.slots.rows[cache.slots.slot_of[held]], K[held], atol=5e-6)
    weights = normal(rng, 300)
    np.testing.assert_allclose(cache.weighted_sum(np.arange(300), weights), K @ weights, atol=1e-4)
