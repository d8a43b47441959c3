"""Training's own copy of the rows: labeled ones first, only the columns that occur."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.kernels import count_columns, gather_rows
from core.rows import SparseRows

_DENSE_SHARE = 8


class Compact(NamedTuple):
    """Rows with columns numbered 0 to len(features) − 1."""

    rows: SparseRows
    features: NDArray[np.uint32]
    """shape (n_seen,), ascending: the feature that each column was"""


def compact(rows: SparseRows, order: NDArray[np.int64]) -> Compact:
    """The rows in another order, without the columns that are empty; so hashed features cost memory by their occurrences, not their range."""
    indptr = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.diff(rows.indptr)[order], out=indptr[1:])
    indices, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.float32)
    if rows.n_features > _DENSE_SHARE * max(1, rows.n_nonzeros):
        return _by_sorting(rows, order, indptr, indices, values)
    counts = np.zeros(rows.n_features, np.int64)
    count_columns(rows.indices, int(rows.indptr[0]), int(rows.indptr[-1]), counts)
    features = np.flatnonzero(counts).astype(np.uint32)
    column_of = np.zeros(rows.n_features, np.uint32)
    column_of[features] = np.arange(len(features), dtype=np.uint32)
    gather_rows(*rows[:3], order, column_of, 0, len(order), indptr, indices, values)
    return Compact(SparseRows(indptr, indices, values, len(features)), features)


def _by_sorting(
    rows: SparseRows, order: NDArray[np.int64], indptr: NDArray[np.int64], indices: NDArray[np.uint32], values: NDArray[np.float32]
) -> Compact:
    """The same where a table of all features would be larger than the rows."""
    used = rows.indices[rows.indptr[0] : rows.indptr[-1]]
    features, columns = np.unique(used, return_inverse=True)
    identity = np.arange(len(features), dtype=np.uint32)
    gather_rows(
        rows.indptr - rows.indptr[0],
        columns.astype(np.uint32),
        rows.values[rows.indptr[0] :],
        order,
        identity,
        0,
        len(order),
        indptr,
        indices,
        values,
    )
    return Compact(SparseRows(indptr, indices, values, len(features)), features.astype(np.uint32))
