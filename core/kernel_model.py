"""The model of the kernel family: rows of the training documents, and a weight of each for every column of scores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.kernel.function import Kernel
from core.model import Arrays, Model, Terms, Weights
from core.rows import SparseRows

_BLOCK = 1 << 22
"""kernel values, and numbers of dense rows, held at once"""
_VALUE_WORK = 16
"""multiplications that a kernel value costs as much as, once the product is known"""
_DENSE = 8
"""support rows are kept dense if that takes at most so many numbers a nonzero: a dense product is as many times as fast"""


@dataclass(frozen=True)
class KernelModel(Model):
    """Scores ``Σ_k weights[k] · kernel(support row k, x) + intercepts`` of documents."""

    support: SparseRows
    """shape (n_support, n_seen): its columns are positions in ``features``"""
    weights: NDArray[np.float64]
    """shape (n_support, n_columns)"""
    intercepts: NDArray[np.float64]
    """shape (n_columns,)"""
    kernel: Kernel
    positions: NDArray[np.int64] | None = field(default=None, kw_only=True)
    """shape (n_support,): where the support rows stand among the documents of training; None of models from when that was not kept"""

    @property
    def nbytes(self) -> int:
        """Memory that the loaded model takes, with its support rows as they are kept to predict by."""
        kept = self._dense.nbytes if self._is_dense else self.support.n_nonzeros * 8 + 8 * len(self.features)
        return self._bytes_worth_a_table + kept + sum(table.nbytes for table in self._table)

    @property
    def row_work(self) -> int:
        """A product with all that is kept of the support rows, a kernel value of each, and a weight of it for every column."""
        products = self.support.n_rows * len(self.features) if self._is_dense else self.support.n_nonzeros
        return products + self.support.n_rows * (_VALUE_WORK + len(self.intercepts))

    def scores_and_unseen(self, rows: SparseRows) -> tuple[NDArray[np.float64], int]:
        """Block by block, so that memory does not grow with the number of documents."""
        scores, unseen = np.empty((rows.n_rows, len(self.intercepts))), 0
        widest = max(1, self.support.n_rows, len(self.features) if self._is_dense else 1)
        height = max(1, _BLOCK // widest)
        for start in range(0, rows.n_rows, height):
            part = rows.between(start, min(start + height, rows.n_rows))
            positions = self._positions(part.indices[part.indptr[0] : part.indptr[-1]])
            unseen += int(np.count_nonzero(positions == len(self.features)))
            scores[start : start + part.n_rows] = self._values(part, positions).astype(np.float64) @ self.weights
        scores += self.intercepts
        return scores, unseen

    def terms(self, row: SparseRows, column: int) -> Terms:
        """A term for each support row that has a weight in this column; what tells most is the row that is nearest, by kernel value."""
        items, weights, intercept = self.weights_of(column)
        values = self._values(row, self._positions(row.indices[row.indptr[0] : row.indptr[-1]]))[0, items].astype(np.float64)
        return Terms(items, values, weights, intercept).sorted(values)

    def weights_of(self, column: int) -> Weights:
        """Support rows and their weights; those that only other columns need are left out."""
        items = np.flatnonzero(self.weights[:, column])
        return Weights(items, self.weights[items, column], float(self.intercepts[column]))

    def to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays to store as tensors, and what else to store as JSON."""
        arrays: Arrays = {"features": self.features, "weights": self.weights, "intercepts": self.intercepts}
        first, last = int(self.support.indptr[0]), int(self.support.indptr[-1])
        arrays |= {"indptr": self.support.indptr - first, "indices": self.support.indices[first:last], "values": self.support.values[first:last]}
        arrays |= {} if self.positions is None else {"positions": self.positions}
        meta = {"kind": "kernel", "classes": list(self.classes), "n_features": self.n_features, "kernel": self.kernel._asdict()}
        return arrays, meta | self._stored_calibration()

    @classmethod
    def read(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of ``to_arrays``."""
        support = SparseRows(arrays["indptr"], arrays["indices"], arrays["values"], len(arrays["features"]))
        kernel = Kernel(**meta["kernel"])
        features, weights, intercepts = arrays["features"], arrays["weights"], arrays["intercepts"]
        return cls(list(meta["classes"]), meta["n_features"], features, support, weights, intercepts, kernel, positions=arrays.get("positions"))

    def facts(self) -> dict[str, str | int]:
        """Its kind, kernel and size, and how many of the training documents it keeps."""
        size = sum(array.nbytes for array in self.to_arrays()[0].values())
        return {"kind": "kernel", "kernel": self.kernel.name, "bytes": size, "n_support": self.support.n_rows}

    @property
    def _bytes_worth_a_table(self) -> int:
        return stored_bytes(self.support.n_rows, self.support.n_nonzeros, self.weights.shape[1])

    @property
    def _is_dense(self) -> bool:
        return self.support.n_rows * len(self.features) <= _DENSE * self.support.n_nonzeros

    @cached_property
    def _centre(self) -> NDArray[np.float32]:
        """What is taken off all rows before distances are computed, so that they do not drown in the rows' distance from the origin."""
        if self.kernel.name != "rbf" or not self._is_dense or not self.support.n_rows:
            return np.zeros(len(self.features), np.float32)
        return np.asarray(_filled(self.support, self.support.indices[self.support.indptr[0] :]).mean(axis=0, dtype=np.float64), np.float32)

    @cached_property
    def _dense(self) -> NDArray[np.float32]:
        """The support rows off their centre, shape (n_support, n_seen)."""
        first, last = self.support.indptr[0], self.support.indptr[-1]
        return _filled(self.support, self.support.indices[first:last]) - self._centre

    @cached_property
    def _columns(self) -> Any:
        """The support rows as a SciPy matrix of shape (n_seen, n_support)."""
        from scipy.sparse import csr_array  # loaded by the first prediction of such a model: it takes a second

        arrays = self.to_arrays()[0]
        shape = (self.support.n_rows, len(self.features))
        return csr_array((arrays["values"], arrays["indices"].astype(np.int64), arrays["indptr"]), shape=shape).T.tocsr()

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        if self._is_dense:
            return _squares(self._dense)
        norms: NDArray[np.float64] = np.asarray(self._columns.multiply(self._columns).sum(axis=0)).ravel()
        return norms.astype(np.float32)

    def _values(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Kernel values of rows with the support rows, shape (n_rows, n_support)."""
        products, norms = self._dense_products(rows, positions) if self._is_dense else self._sparse_products(rows, positions)
        self.kernel.turn(products, norms, self._norms)
        return products

    def _dense_products(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        dense = _filled(rows._replace(n_features=len(self.features)), positions) - self._centre
        return np.asarray(dense @ self._dense.T, np.float32), _squares(dense)

    def _sparse_products(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        from scipy.sparse import csr_array

        values = rows.values[rows.indptr[0] : rows.indptr[-1]] * (positions < len(self.features))
        columns = np.minimum(positions, max(0, len(self.features) - 1)).astype(np.int64)
        matrix = csr_array((values, columns, rows.indptr - rows.indptr[0]), shape=(rows.n_rows, len(self.features)))
        owners = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        norms = np.bincount(owners, values.astype(np.float64) ** 2, rows.n_rows)
        return (matrix @ self._columns).toarray(), norms.astype(np.float32)


def stored_bytes(n_support: int, n_nonzeros: int, n_columns: int) -> int:
    """Bytes of a model's support rows, their positions and weights, without its table of features."""
    return n_nonzeros * 8 + n_support * (16 + 8 * n_columns)


def _filled(rows: SparseRows, positions: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
    """Rows as a dense matrix of shape (n_rows, n_features), given the columns of their nonzeros; what has no column is left out."""
    dense = np.zeros((rows.n_rows, rows.n_features + 1), np.float32)
    owners = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    dense[owners, positions] = rows.values[rows.indptr[0] : rows.indptr[-1]]
    return dense[:, :-1]


def _squares(dense: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.einsum("ij,ij->i", dense, dense), np.float32)
