"""The model of the kernel family: rows of the training documents, and a weight of each for every column of scores."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows, sorted_rows, to_dense
from core.errors import MAX_FAULTS, Fault, InvalidDocuments
from core.kernels.function import Kernel, near
from core.models.model import Arrays, Contributions, Model, Weights
from core.problem import stored_bytes

_BLOCK = 1 << 21
"""kernel values, and numbers of dense rows, held at once"""
_TILE = 1 << 18
"""numbers of support rows in float64 at a time: few enough to stay in the processor's cache until they are
multiplied"""
_VALUE_WORK = 16
"""multiplications that a kernel value costs as much as, once the product is known"""
_DENSE = 8
"""support rows are kept dense if that takes at most so many numbers a nonzero: a dense product is as many times as
fast"""


@dataclass(frozen=True)
class KernelModel(Model):
    """Scores ``Σ_k weights[k] · kernel(support row k, x) + intercepts`` of documents, in float64.

    Large weights magnify what kernel values lack. In float64 a score depends neither on the documents beside it nor, to
    some ten digits, on what multiplies the rows; so an exported model scores as the service does.
    """

    support: SparseRows
    """shape (n_support, n_seen): its columns are positions in ``features``"""
    weights: NDArray[np.float64]
    """shape (n_support, n_columns)"""
    intercepts: NDArray[np.float64]
    """shape (n_columns,)"""
    kernel: Kernel
    positions: NDArray[np.int64] | None = field(default=None, kw_only=True)
    """shape (n_support,): where the support rows stand among the documents of training; None of models from when that
    was not kept"""
    scales: NDArray[np.float64] | None = field(default=None, kw_only=True)
    """shape (n_seen,): what the features of a document are multiplied by first, as those of the support rows are; None
    if by nothing"""

    @property
    def weight_bytes(self) -> int:
        """See Model; of the support rows, as they are kept to predict by."""
        kept = self._dense.nbytes if self.is_dense else self.support.n_nonzeros * 12 + 8 * len(self.features)
        return self._bytes_worth_a_table + kept + sum(table.nbytes for table in self._table)

    @property
    def row_work(self) -> int:
        """A product with all that is kept of the support rows, a kernel value of each, and a weight of it for every
        column.
        """
        products = self.support.n_rows * len(self.features) if self.is_dense else self.support.n_nonzeros
        return products + self.support.n_rows * (_VALUE_WORK + len(self.intercepts))

    def scores_and_unseen(self, rows: SparseRows) -> tuple[NDArray[np.float64], int]:
        """Block by block, so that memory does not grow with the number of documents.

        Raises InvalidDocuments if a score is beyond the range of numbers, as a high power of huge values is.
        """
        scores, unseen = np.empty((rows.n_rows, len(self.intercepts))), 0
        widest = max(1, self.support.n_rows, len(self.features) if self.is_dense else 1)
        height = max(1, _BLOCK // widest)
        for start in range(0, rows.n_rows, height):
            part = rows.between(start, min(start + height, rows.n_rows))
            positions = self._positions(part.trimmed.indices)
            unseen += int(np.count_nonzero(positions == len(self.features)))
            with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at below
                scores[start : start + part.n_rows] = self._values(part, positions) @ self.weights
        scores += self.intercepts
        beyond = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(beyond):
            faults = [
                Fault(row, "values", "so large that the score is beyond the range of numbers")
                for row in beyond[:MAX_FAULTS].tolist()
            ]
            raise InvalidDocuments("documents cannot be scored by this model", faults)
        return scores, unseen

    def contributions(self, row: SparseRows, column: int) -> Contributions:
        """One for each support row that has a weight in this column; the importance is the kernel value, so the nearest
        row comes first.
        """
        items, weights, intercept = self.weights_of(column)
        values = self._values(row, self._positions(row.trimmed.indices))[0, items]
        return Contributions(items, values, weights, intercept).sorted_by(values)

    def weights_of(self, column: int) -> Weights:
        """Support rows with a weight in this column, and the weights."""
        items = np.flatnonzero(self.weights[:, column])
        return Weights(items, self.weights[items, column], float(self.intercepts[column]))

    def weights_to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """See Model."""
        arrays: Arrays = {"features": self.features, "weights": self.weights, "intercepts": self.intercepts}
        arrays |= dict(zip(("indptr", "indices", "values"), self.support.trimmed.csr, strict=True))
        arrays |= {} if self.positions is None else {"positions": self.positions}
        arrays |= {} if self.scales is None else {"scales": self.scales}
        meta = {
            "family": "kernel",
            "classes": list(self.classes),
            "n_features": self.n_features,
            "kernel": self.kernel._asdict(),
        }
        return arrays, meta

    @classmethod
    def read(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of ``weights_to_arrays``."""
        support = SparseRows(arrays["indptr"], arrays["indices"], arrays["values"], len(arrays["features"]))
        kernel = Kernel(**meta["kernel"])
        features, weights, intercepts = arrays["features"], arrays["weights"], arrays["intercepts"]
        positions, scales = arrays.get("positions"), arrays.get("scales")
        return cls(
            list(meta["classes"]),
            meta["n_features"],
            features,
            support,
            weights,
            intercepts,
            kernel,
            positions=positions,
            scales=scales,
        )

    def weight_facts(self) -> dict[str, str | int]:
        """Its family and kernel, and how many of the training documents it keeps."""
        return {"family": "kernel", "kernel": self.kernel.name, "n_support": self.support.n_rows}

    def renumbered(self, numbers: NDArray[np.int64]) -> Self:
        """See Model."""
        features = numbers[self.features]
        order = np.argsort(features)
        own = self.support.trimmed
        indices = np.argsort(order).astype(np.uint32)[own.indices]
        support = sorted_rows(own._replace(indices=indices, n_features=len(features)))
        scales = None if self.scales is None else self.scales[order]
        n_features = int(features.max(initial=-1)) + 1
        return replace(
            self, n_features=n_features, features=features[order].astype(np.uint32), support=support, scales=scales
        )

    @property
    def _bytes_worth_a_table(self) -> int:
        return stored_bytes(self.support.n_rows, self.support.n_nonzeros, self.weights.shape[1])

    @property
    def is_dense(self) -> bool:
        """Whether support rows are multiplied as dense ones."""
        return self.support.n_rows * len(self.features) <= _DENSE * self.support.n_nonzeros

    @cached_property
    def centre(self) -> NDArray[np.float64]:
        """The mean of the support rows, without far ones: taken off dense rows, so that distances keep their digits."""
        if self.kernel.name != "rbf" or not self.is_dense or not self.support.n_rows:
            return np.zeros(len(self.features))
        own = self.support.trimmed
        values = own.values.astype(np.float64)
        chosen = near(_squares_of_rows(own, values))
        sums = np.bincount(own.indices, values * chosen[own.owners], len(self.features))
        return np.asarray(sums / np.count_nonzero(chosen), np.float64)

    @cached_property
    def _dense(self) -> NDArray[np.float32]:
        """The support rows, shape (n_support, n_seen)."""
        return to_dense(self.support, self.support.trimmed.indices)

    def _tiles(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The support rows less their centre, some at a time."""
        height = max(1, _TILE // max(1, len(self.features)))
        for start in range(0, self.support.n_rows, height):
            part = slice(start, start + height)
            yield part, self._dense[part] - self.centre

    @cached_property
    def _columns(self) -> Any:
        """The support rows as a SciPy matrix of shape (n_seen, n_support)."""
        from scipy.sparse import csr_array  # loaded by the first prediction of such a model: it takes a second

        arrays = self.weights_to_arrays()[0]
        shape = (self.support.n_rows, len(self.features))
        return csr_array(
            (arrays["values"].astype(np.float64), arrays["indices"].astype(np.int64), arrays["indptr"]), shape=shape
        ).T.tocsr()

    @cached_property
    def _norms(self) -> NDArray[np.float64]:
        """|x|² of the support rows, dense ones less their centre, shape (n_support,)."""
        if self.is_dense:
            return np.concatenate([np.zeros(0), *(_squares(tile) for _, tile in self._tiles())])
        return _squares_of_rows(self.support, self.support.trimmed.values.astype(np.float64))

    def _values(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Kernel values of rows with the support rows, shape (n_rows, n_support)."""
        rows = self._scaled(rows, positions)
        products, norms = (
            self._dense_products(rows, positions) if self.is_dense else self._sparse_products(rows, positions)
        )
        self.kernel.apply_to_products(products, norms, self._norms)
        return products

    def _scaled(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> SparseRows:
        """The rows, with values scaled as in the support rows."""
        if self.scales is None:
            return rows
        own = rows.trimmed
        return own._replace(values=(own.values * np.append(self.scales, 0.0)[positions]).astype(np.float32))

    def _dense_products(
        self, rows: SparseRows, positions: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Inner products with the support rows and |x|², both less the centre."""
        dense = to_dense(rows._replace(n_features=len(self.features)), positions) - self.centre
        products = np.empty((rows.n_rows, self.support.n_rows))
        for part, tile in self._tiles():
            np.matmul(dense, tile.T, out=products[:, part])
        return products, _squares(dense)

    def _sparse_products(
        self, rows: SparseRows, positions: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Inner products with the support rows and |x|²."""
        from scipy.sparse import csr_array

        seen, own = positions < len(self.features), rows.trimmed
        values = own.values * seen.astype(np.float64)
        columns = np.minimum(positions, max(0, len(self.features) - 1)).astype(np.int64)
        matrix = csr_array((values, columns, own.indptr), shape=(rows.n_rows, len(self.features)))
        return (matrix @ self._columns).toarray(), _squares_of_rows(own, values)


def _squares(dense: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.einsum("ij,ij->i", dense, dense), np.float64)


def _squares_of_rows(rows: SparseRows, values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """|x|² of rows, with these values in place of their own, shape (n_rows,)."""
    return np.asarray(np.bincount(rows.owners, values**2, rows.n_rows), np.float64)
