"""Kernel rows for tests: a cache of one thread, and whole kernel matrices."""

from collections.abc import Callable, Iterable

import numpy as np

from core.documents.rows import SparseRows
from core.kernels.cache import RowCache
from core.kernels.function import Kernel
from core.kernels.gram import Gram
from tests.core.problems import Array


class Alone:
    """A team of one."""

    n_threads = 1

    def side_by_side(self, works: Iterable[Callable[[], None]]) -> None:
        for work in works:
            work()


def cache_of(rows: SparseRows, kernel: Kernel, most_bytes: int = 2**30, weights: Array | None = None) -> RowCache:
    return RowCache(Gram(rows, kernel, weights), most_bytes, Alone(), lambda: None)


def whole(gram: Gram) -> Array:
    out = np.empty((gram.n_points, gram.n_points), np.float32)
    gram.fill(np.arange(gram.n_points), out)
    return out.astype(np.float64)
