"""The model of the linear family: a coefficient for each feature that training saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.model import Arrays, Model
from core.rows import SparseRows

_CHUNK = 1 << 15
"""products computed at once: few enough that they stay in the processor's cache"""


@dataclass(frozen=True)
class LinearModel(Model):
    """Linear scores ``x @ coefficients + intercepts`` of documents."""

    coefficients: NDArray[np.float64]
    """shape (n_seen, n_columns)"""
    intercepts: NDArray[np.float64]
    """shape (n_columns,)"""

    @property
    def nbytes(self) -> int:
        """Memory that the loaded model takes, its look-up table included."""
        arrays: list[NDArray[Any]] = [self.features, self.coefficients, self._padded, *self._table]
        return sum(array.nbytes for array in arrays)

    def scores_and_unseen(self, rows: SparseRows) -> tuple[NDArray[np.float64], int]:
        """Both for the price of one: the features are looked up once."""
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

    def to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays to store as tensors, and what else to store as JSON."""
        arrays: Arrays = {"features": self.features, "coefficients": self.coefficients, "intercepts": self.intercepts}
        return arrays, {"kind": "linear", "classes": list(self.classes), "n_features": self.n_features}

    @classmethod
    def read(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of ``to_arrays``."""
        return cls(list(meta["classes"]), meta["n_features"], arrays["features"], arrays["coefficients"], arrays["intercepts"])

    def facts(self) -> dict[str, str | int]:
        """Its kind and size, and how many features have a coefficient."""
        return {"kind": "linear", "bytes": sum(array.nbytes for array in self.to_arrays()[0].values()), "n_seen_features": len(self.features)}

    @property
    def _bytes_worth_a_table(self) -> int:
        return self.coefficients.nbytes

    @cached_property
    def _padded(self) -> NDArray[np.float64]:
        """The coefficients with a row of zeros for whatever is unseen."""
        return np.vstack([self.coefficients, np.zeros((1, self.coefficients.shape[1]))])

    def _products(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Products of rows whose features are at these rows of ``_padded``; gathering is told to clip, as in ``_positions``."""
        terms = self._padded.take(positions, axis=0, mode="clip")
        terms *= rows.values[rows.indptr[0] : rows.indptr[-1], None]
        products = np.zeros((rows.n_rows, terms.shape[1]))
        starts = rows.indptr[:-1] - rows.indptr[0]
        filled = np.flatnonzero(rows.indptr[1:] > rows.indptr[:-1])
        if len(filled):
            products[filled] = np.add.reduceat(terms, starts[filled], axis=0)
        return products
