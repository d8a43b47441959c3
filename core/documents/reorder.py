"""Copies of rows in another order: a training's own has labeled rows first, and only the columns that occur."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import MEMORY, FullRows, Pages, Space, SparseRows, full_is_smaller
from core.documents.term_weights import TermWeights, weigh
from core.numerics.compiled import compiled, read_only
from core.progress import Checkpoint

_DENSE_SHARE = 8
_SLICE = 1 << 22


class Compact(NamedTuple):
    """Rows with columns numbered 0 to len(features) − 1."""

    rows: SparseRows
    features: NDArray[np.uint32]
    """shape (n_seen,), ascending: original feature of each column"""
    terms: TermWeights | None = None
    """what has weighed the values; None: they are as they came"""

    def weighed(self, checkpoint: Checkpoint) -> "Compact":
        """The same rows with weights of terms, which overwrite their values, where they are bags of terms; see
        core.documents.term_weights.weigh.
        """
        return self._replace(terms=weigh(self.rows, checkpoint))


def compact(rows: SparseRows, order: NDArray[np.int64], checkpoint: Checkpoint, space: Space = MEMORY) -> Compact:
    """The rows in another order, without empty columns: hashed features then cost memory by their occurrences, not by
    their range. Dense rows are stored dense. The copy lies in ``space``.

    ``checkpoint`` is called between slices of some million nonzeros; what it raises ends the work. Pages of mapped
    files are released once they are read: else they would count as memory of this process beside the copy.
    """
    features, columns, column_of = _numbering(rows, checkpoint)
    copy = _full_copy if full_is_smaller(rows.n_rows, rows.n_nonzeros, len(features)) else _copy
    return Compact(copy(rows._replace(indices=columns), order, column_of, len(features), checkpoint, space), features)


def gathered(
    rows: SparseRows, positions: NDArray[np.int64], checkpoint: Checkpoint = lambda: None, space: Space = MEMORY
) -> SparseRows:
    """A copy of the rows at these positions, in that order; ``checkpoint`` and ``space`` as in ``compact``."""
    if isinstance(rows, FullRows):
        return _gathered_full(rows, positions, checkpoint, space)
    return _copy(rows, positions, np.arange(rows.n_features, dtype=np.uint32), rows.n_features, checkpoint, space)


def _copy(
    rows: SparseRows,
    order: NDArray[np.int64],
    column_of: NDArray[np.uint32],
    n_columns: int,
    checkpoint: Checkpoint,
    space: Space,
) -> SparseRows:
    """A copy with row ``order[i]`` as row i, and columns numbered by ``column_of``."""
    indptr = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.diff(rows.indptr)[order], out=indptr[1:])
    copy = SparseRows(
        indptr, space.zeros(int(indptr[-1]), np.uint32), space.zeros(int(indptr[-1]), np.float32), n_columns
    )
    for start, stop in copy.slices(_SLICE):
        gather_rows(*rows.csr, order, column_of, start, stop, *copy.csr)
        _release_pages(rows.indices, rows.values, copy.indices, copy.values)
        checkpoint()
    return copy


def _full_copy(
    rows: SparseRows,
    order: NDArray[np.int64],
    column_of: NDArray[np.uint32],
    n_columns: int,
    checkpoint: Checkpoint,
    space: Space,
) -> FullRows:
    """A dense copy with row ``order[i]`` as row i, and columns numbered by ``column_of``."""
    copy = FullRows.of(space.zeros(len(order) * n_columns, np.float32).reshape(len(order), n_columns))
    indptr, indices, values = (read_only(array) for array in rows.csr)
    for start, stop in copy.slices(_SLICE):
        scatter_rows(indptr, indices, values, order, column_of, start, stop, copy.values, n_columns)
        _release_pages(rows.indices, rows.values, copy.values)
        checkpoint()
    return copy


def _gathered_full(rows: FullRows, positions: NDArray[np.int64], checkpoint: Checkpoint, space: Space) -> FullRows:
    copy = FullRows.of(
        space.zeros(len(positions) * rows.n_features, np.float32).reshape(len(positions), rows.n_features)
    )
    for start, stop in copy.slices(_SLICE):
        np.take(rows.matrix, positions[start:stop], axis=0, out=copy.matrix[start:stop])
        _release_pages(rows.values, copy.values)
        checkpoint()
    return copy


def _numbering(
    rows: SparseRows, checkpoint: Checkpoint
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """The features that occur, an array of indices for the rows, and the column in the copy of each such index."""
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    if rows.n_features > _DENSE_SHARE * max(1, last - first):  # a table of all features would be larger than the rows
        columns = np.zeros(last, np.uint32)
        features, columns[first:] = np.unique(rows.indices[first:last], return_inverse=True)
        _release_pages(rows.indices)
        return features.astype(np.uint32), columns, np.arange(len(features), dtype=np.uint32)
    counts = np.zeros(rows.n_features, np.int64)
    for start in range(first, last, _SLICE):
        count_columns(rows.indices, start, min(start + _SLICE, last), counts)
        _release_pages(rows.indices)
        checkpoint()
    features = np.flatnonzero(counts).astype(np.uint32)
    column_of = np.zeros(rows.n_features, np.uint32)
    column_of[features] = np.arange(len(features), dtype=np.uint32)
    return features, rows.indices, column_of


def _release_pages(*arrays: NDArray[np.uint32] | NDArray[np.float32]) -> None:
    for array in arrays:
        Pages(array).release(0, len(array))


@compiled
def count_columns(indices: NDArray[np.uint32], start: int, stop: int, counts: NDArray[np.int64]) -> None:
    """``counts[j]`` grows by the occurrences of column j in a range of nonzeros."""
    for k in range(np.uintp(start), np.uintp(stop)):
        counts[np.uintp(indices[k])] += 1


@compiled
def gather_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    order: NDArray[np.int64],
    column_of: NDArray[np.uint32],
    start: int,
    stop: int,
    new_indptr: NDArray[np.int64],
    new_indices: NDArray[np.uint32],
    new_values: NDArray[np.float32],
) -> None:
    """Row i of the new arrays becomes row ``order[i]`` of the old ones, its columns renamed by ``column_of``."""
    for i in range(start, stop):
        row = order[i]
        target = np.uintp(new_indptr[i])
        for k in range(np.uintp(indptr[row]), np.uintp(indptr[row + 1])):
            new_indices[target] = column_of[np.uintp(indices[k])]
            new_values[target] = values[k]
            target += np.uintp(1)


@compiled
def scatter_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    order: NDArray[np.int64],
    column_of: NDArray[np.uint32],
    start: int,
    stop: int,
    cells: NDArray[np.float32],
    n_columns: int,
) -> None:
    """Write row ``order[i]`` of sparse rows to row i of a matrix of zeros, with columns renamed by ``column_of``."""
    for i in range(start, stop):
        row = order[i]
        first = np.uintp(i * n_columns)
        for k in range(np.uintp(indptr[row]), np.uintp(indptr[row + 1])):
            cells[first + np.uintp(column_of[np.uintp(indices[k])])] = values[k]
