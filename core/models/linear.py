"""The linear model: a coefficient for each feature that training saw."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.models.model import Arrays, Contributions, Model, Weights

_CHUNK = 1 << 16
"""products that are computed at once: few enough for the processor's cache, enough that threads seldom wait for each
other"""
_SPREAD_BYTES = 64 << 20


class _Table(NamedTuple):
    """Look-up table of coefficients."""

    by_feature: bool
    """whether there is a row for every feature, seen or not; else one for each position in ``features``"""
    coefficients: NDArray[np.float64]
    """shape (n_rows, n_columns); zeros where unseen, and in the last row, that of all features beyond"""
    seen: NDArray[np.bool_]
    """shape (n_rows,): whether training saw the feature"""


@dataclass(frozen=True)
class LinearModel(Model):
    """Linear scores ``x @ coefficients + intercepts`` of documents."""

    coefficients: NDArray[np.float64]
    """shape (n_seen, n_columns)"""
    intercepts: NDArray[np.float64]
    """shape (n_columns,)"""

    @property
    def weight_bytes(self) -> int:
        """See Model."""
        table = self._coefficients
        arrays: list[NDArray[Any]] = [
            self.features,
            self.coefficients,
            table.coefficients,
            table.seen,
            *([] if table.by_feature else self._table),
        ]
        return sum(array.nbytes for array in arrays)

    @property
    def row_work(self) -> int:
        """See Model; an intercept a column."""
        return len(self.intercepts)

    def scores_and_unseen(self, rows: SparseRows) -> tuple[NDArray[np.float64], int]:
        """See Model; the features are looked up once for both."""
        scores, unseen = np.empty((rows.n_rows, len(self.intercepts))), 0
        width = max(1, _CHUNK // len(self.intercepts))
        start = 0
        while start < rows.n_rows:
            stop = rows.n_rows
            if rows.n_nonzeros > width:
                stop = max(start + 1, int(np.searchsorted(rows.indptr, rows.indptr[start] + width, "right")) - 1)
            part = rows.between(start, stop)
            indices = part.trimmed.indices
            # gathering converts positions to this type, so they are converted once for both
            positions = (indices if self._coefficients.by_feature else self._positions(indices)).astype(
                np.intp, copy=False
            )
            scores[start:stop] = self._products(part, positions)
            unseen += len(positions) - int(np.count_nonzero(self._coefficients.seen.take(positions, mode="clip")))
            start = stop
        scores += self.intercepts
        return scores, unseen

    def contributions(self, row: SparseRows, column: int) -> Contributions:
        """One for each nonzero of a feature that training saw; the importance is the size of the product."""
        own = row.trimmed
        positions = self._positions(own.indices)
        seen = positions < len(self.features)
        positions = positions[seen]
        values, weights = own.values[seen].astype(np.float64), self.coefficients[positions, column]
        contributions = Contributions(
            self.features[positions].astype(np.int64), values, weights, float(self.intercepts[column])
        )
        return contributions.sorted_by(np.abs(contributions.amounts))

    def weights_of(self, column: int) -> Weights:
        """Features and their coefficients."""
        return Weights(self.features.astype(np.int64), self.coefficients[:, column], float(self.intercepts[column]))

    def weights_to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """See Model."""
        arrays: Arrays = {"features": self.features, "coefficients": self.coefficients, "intercepts": self.intercepts}
        return arrays, {"family": "linear", "classes": list(self.classes), "n_features": self.n_features}

    @classmethod
    def read(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of ``weights_to_arrays``."""
        return cls(
            list(meta["classes"]), meta["n_features"], arrays["features"], arrays["coefficients"], arrays["intercepts"]
        )

    def weight_facts(self) -> dict[str, str | int]:
        """The family, and the number of features that have a coefficient."""
        return {"family": "linear", "n_seen_features": len(self.features)}

    def renumbered(self, numbers: NDArray[np.int64]) -> Self:
        """See Model."""
        features = numbers[self.features]
        order = np.argsort(features, kind="stable")
        return replace(
            self,
            n_features=int(features.max(initial=-1)) + 1,
            features=features[order].astype(np.uint32),
            coefficients=self.coefficients[order],
        )

    @property
    def _bytes_worth_a_table(self) -> int:
        return self.coefficients.nbytes

    @cached_property
    def _coefficients(self) -> _Table:
        """With a row for every feature if so large a table is bearable: then no positions are looked up."""
        n_columns = self.coefficients.shape[1]
        by_feature = (self.n_features + 1) * n_columns * 8 <= max(_SPREAD_BYTES, 2 * self.coefficients.nbytes)
        n_rows = self.n_features if by_feature else len(self.features)
        rows = self.features if by_feature else np.arange(n_rows)
        coefficients, seen = np.zeros((n_rows + 1, n_columns)), np.zeros(n_rows + 1, bool)
        coefficients[rows], seen[rows] = self.coefficients, True
        return _Table(by_feature, coefficients, seen)

    def _products(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Scores of rows without intercepts, by the positions of their features in the table; gathered as in
        ``_positions``.
        """
        terms = self._coefficients.coefficients.take(positions, axis=0, mode="clip")
        terms *= rows.values[rows.indptr[0] : rows.indptr[-1], None]
        products = np.zeros((rows.n_rows, terms.shape[1]))
        starts = rows.indptr[:-1] - rows.indptr[0]
        filled = np.flatnonzero(rows.indptr[1:] > rows.indptr[:-1])
        if len(filled):
            products[filled] = np.add.reduceat(terms, starts[filled], axis=0)
        return products
