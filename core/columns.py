"""Training's own copy of the rows: labeled ones first, only the columns that occur."""

import mmap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.loops import count_columns, gather_rows
from core.rows import SparseRows

_DENSE_SHARE = 8
_SLICE = 1 << 22


class Compact(NamedTuple):
    """Rows with columns numbered 0 to len(features) − 1."""

    rows: SparseRows
    features: NDArray[np.uint32]
    """shape (n_seen,), ascending: the feature that each column was"""


def compact(rows: SparseRows, order: NDArray[np.int64], between: Callable[[], None]) -> Compact:
    """The rows in another order, without the columns that are empty; so hashed features cost memory by their occurrences, not their range.

    ``between`` is called between slices of some million nonzeros; what it raises ends the work. Pages of mapped files are let go as they
    are read: else they would count as this process's memory beside the copy.
    """
    indptr = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.diff(rows.indptr)[order], out=indptr[1:])
    features, columns, column_of = _numbering(rows, between)
    indices, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.float32)
    for start, stop in _slices(indptr):
        gather_rows(rows.indptr, columns, rows.values, order, column_of, start, stop, indptr, indices, values)
        _let_go(rows)
        between()
    return Compact(SparseRows(indptr, indices, values, len(features)), features)


def _numbering(rows: SparseRows, between: Callable[[], None]) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """The features that occur, an index array, and what its entries are called in the copy."""
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    if rows.n_features > _DENSE_SHARE * max(1, last - first):  # a table of all features would be larger than the rows
        columns = np.zeros(last, np.uint32)
        features, columns[first:] = np.unique(rows.indices[first:last], return_inverse=True)
        return features.astype(np.uint32), columns, np.arange(len(features), dtype=np.uint32)
    counts = np.zeros(rows.n_features, np.int64)
    for start in range(first, last, _SLICE):
        count_columns(rows.indices, start, min(start + _SLICE, last), counts)
        _let_go(rows)
        between()
    features = np.flatnonzero(counts).astype(np.uint32)
    column_of = np.zeros(rows.n_features, np.uint32)
    column_of[features] = np.arange(len(features), dtype=np.uint32)
    return features, rows.indices, column_of


def _slices(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of rows of about as many nonzeros as a slice holds."""
    bounds = np.unique(np.searchsorted(indptr, np.arange(0, int(indptr[-1]) + _SLICE, _SLICE)))
    bounds = np.unique(np.append(np.minimum(bounds, len(indptr) - 1), [0, len(indptr) - 1]))
    yield from zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)


def _let_go(rows: SparseRows) -> None:
    for array in (rows.indices, rows.values):
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap):
            base.madvise(mmap.MADV_DONTNEED)
