"""What training leaves behind and prediction needs: loads with NumPy alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.rows import SparseRows

_TABLE_BYTES = 64 << 20
_CHUNK = 1 << 15
"""products computed at once: few enough that they stay in the processor's cache"""


@dataclass(frozen=True)
class Model:
    """Linear scores ``x @ coefficients + intercepts`` of documents.

    Two classes have one column of scores, positive for the second of ``classes``; more have a column each, the largest wins.
    Features that training never saw count as zero.
    """

    classes: Sequence[str | int]
    n_features: int
    """of the training documents; larger indices are as unseen as gaps"""
    features: NDArray[np.uint32]
    """shape (n_seen,), ascending: the features that occurred in training"""
    coefficients: NDArray[np.float64]
    """shape (n_seen, n_columns)"""
    intercepts: NDArray[np.float64]
    """shape (n_columns,)"""

    @property
    def nbytes(self) -> int:
        """Memory that the loaded model takes, its look-up table included."""
        arrays: list[NDArray[Any]] = [self.features, self.coefficients, self._padded, *self._table]
        return sum(array.nbytes for array in arrays)

    def scores(self, rows: SparseRows) -> NDArray[np.float64]:
        """shape (n_rows, n_columns)."""
        return self.scores_and_unseen(rows)[0]

    def unseen(self, rows: SparseRows) -> int:
        """How many nonzeros of the rows are of features that training never saw."""
        return self.scores_and_unseen(rows)[1]

    def scores_and_unseen(self, rows: SparseRows) -> tuple[NDArray[np.float64], int]:
        """Both of the above for the price of one: the features are looked up once."""
        scores, unseen = np.empty((rows.n_rows, len(self.intercepts))), 0
        width = max(1, _CHUNK // len(self.intercepts))
        start = 0
        while start < rows.n_rows:
            stop = max(start + 1, int(np.searchsorted(rows.indptr, rows.indptr[start] + width, "right")) - 1)
            part = rows.between(start, stop)
            positions = self._positions(part.indices[part.indptr[0] : part.indptr[-1]])
            scores[start:stop] = self._products(part, positions)
            unseen += int(np.count_nonzero(positions == len(self.features)))
            start = stop
        scores += self.intercepts
        return scores, unseen

    def labels_of(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """shape (n_rows,): positions in ``classes``."""
        if scores.shape[1] == 1:
            return (scores[:, 0] > 0).astype(np.intp)
        return np.asarray(np.argmax(scores, axis=1), np.intp)

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """shape (n_rows, n_classes), or None for a model that was not calibrated."""
        return None

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays to store as tensors, and what else to store as JSON."""
        arrays: dict[str, NDArray[Any]] = {"features": self.features, "coefficients": self.coefficients, "intercepts": self.intercepts}
        return arrays, {"kind": "linear", "classes": list(self.classes), "n_features": self.n_features}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> "Model":
        """The inverse of ``to_arrays``."""
        return cls(list(meta["classes"]), meta["n_features"], arrays["features"], arrays["coefficients"], arrays["intercepts"])

    @cached_property
    def _table(self) -> list[NDArray[np.uint32]]:
        """Position of every feature in ``features`` (the number of features where unseen), where so large a table is bearable."""
        if self.n_features * 4 > max(_TABLE_BYTES, 2 * self.coefficients.nbytes):
            return []
        table = np.full(self.n_features + 1, len(self.features), np.uint32)
        table[self.features] = np.arange(len(self.features), dtype=np.uint32)
        return [table]

    @cached_property
    def _padded(self) -> NDArray[np.float64]:
        """The coefficients with a row of zeros for whatever is unseen."""
        return np.vstack([self.coefficients, np.zeros((1, self.coefficients.shape[1]))])

    def _positions(self, indices: NDArray[np.uint32]) -> NDArray[np.integer[Any]]:
        """Rows of ``_padded``. Gathering is told to clip, which takes a third of the time of an index that is checked."""
        if self._table:
            return self._table[0].take(indices, mode="clip")
        if not len(self.features):
            return np.zeros(len(indices), np.intp)
        at = np.searchsorted(self.features, indices)
        found = self.features.take(at, mode="clip") == indices
        return np.where(found, at, len(self.features))

    def _products(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        terms = self._padded.take(positions, axis=0, mode="clip")
        terms *= rows.values[rows.indptr[0] : rows.indptr[-1], None]
        products = np.zeros((rows.n_rows, terms.shape[1]))
        starts = rows.indptr[:-1] - rows.indptr[0]
        filled = np.flatnonzero(rows.indptr[1:] > rows.indptr[:-1])
        if len(filled):
            products[filled] = np.add.reduceat(terms, starts[filled], axis=0)
        return products
