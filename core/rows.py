"""Sparse documents as rows: compressed sparse row (CSR) arrays and the checks that every door applies to them.

Conventions: row ``i`` owns the slice ``indptr[i]:indptr[i + 1]`` of ``indices`` and ``values``; indices are 0-based, strictly ascending in a
row, and below ``n_features``. Unsigned indices and float32 values halve the memory traffic of a pass; sums are taken in float64.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import Fault, InvalidDocuments

MAX_FEATURES = 2**31
"""Indices lie below this bound, so that every reader of the wire formats can hold them."""


class SparseRows(NamedTuple):
    """CSR matrix of shape (n_rows, n_features)."""

    indptr: NDArray[np.int64]
    """shape (n_rows + 1,), ascending from 0"""
    indices: NDArray[np.uint32]
    """shape (n_nonzeros,)"""
    values: NDArray[np.float32]
    """shape (n_nonzeros,)"""
    n_features: int

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_nonzeros(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])

    def between(self, start: int, stop: int) -> "SparseRows":
        """Rows ``start`` to ``stop`` as a view: ``indptr`` keeps its offsets into the shared arrays."""
        return self._replace(indptr=self.indptr[start : stop + 1])
