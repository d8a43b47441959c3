"""Dense documents as rows that store every feature: their indices go without saying, so a number takes 4 bytes instead
of 8.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows

_NONZERO_BYTES, _CELL_BYTES = 8, 4


def full_is_smaller(n_rows: int, n_nonzeros: int, n_features: int) -> bool:
    """Whether rows take less memory when every feature is stored, zeros included."""
    return n_features > 0 and _CELL_BYTES * n_rows * n_features <= _NONZERO_BYTES * n_nonzeros


class FullRows(SparseRows):
    """Rows that store all features, zeros included.

    What reads them by their indices gets these, made at first use.
    """

    @classmethod
    def of(cls, matrix: NDArray[np.float32]) -> "FullRows":
        """The rows of a matrix in C order, shape (n_rows, n_features), which are not copied."""
        n_rows, n_features = matrix.shape
        implied: Any = _ImpliedIndices(n_rows, n_features)
        return cls(np.arange(n_rows + 1, dtype=np.int64) * n_features, implied, matrix.reshape(-1), n_features)

    @property
    def indices(self) -> NDArray[np.uint32]:
        """See SparseRows; views of the same rows share them."""
        implied: Any = self[1]
        found: NDArray[np.uint32] = implied.array
        return found

    @property
    def matrix(self) -> NDArray[np.float32]:
        """shape (n_rows, n_features): the values."""
        return self.values[self.indptr[0] : self.indptr[-1]].reshape(self.n_rows, self.n_features)

    def between(self, start: int, stop: int) -> "FullRows":
        """See SparseRows."""
        return self._replace(indptr=self.indptr[start : stop + 1])

    def columns(self, start: int, stop: int) -> NDArray[np.uint32]:
        """See SparseRows."""
        first = start % self.n_features
        count = -(-(first + stop - start) // self.n_features)
        return np.tile(np.arange(self.n_features, dtype=np.uint32), count)[first : first + stop - start]


class _ImpliedIndices:
    """The indices of all rows, made when they are asked for."""

    def __init__(self, n_rows: int, n_features: int) -> None:
        self._shape = n_rows, n_features
        self._array: NDArray[np.uint32] | None = None

    @property
    def array(self) -> NDArray[np.uint32]:
        """shape (n_rows · n_features,)"""
        if self._array is None:
            n_rows, n_features = self._shape
            self._array = np.tile(np.arange(n_features, dtype=np.uint32), n_rows)
        return self._array
