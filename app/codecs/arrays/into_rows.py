"""Rows of documents from arrays in another order: by column (CSC), by coordinates (COO), or in several streams.

Entries are counted by row, then written to the place of their row in files that are mapped into memory: memory grows
with the number of documents alone, by 16 bytes each."""

from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.codecs.arrays.archive import Array, invalid_array
from app.codecs.base import Reading
from core.documents.kinds import PartRows, Rows, parts_of
from core.documents.rows import SparseRows

SLICE_ENTRIES = 1 << 18
"""Entries that are moved at a time."""


class Entries(NamedTuple):
    """Some entries of a matrix: all arrays of shape (n_entries,)."""

    rows: NDArray[np.int64]
    columns: NDArray[np.uint32]
    values: NDArray[np.float32]


class Compressed(NamedTuple):
    """A whole matrix by row; ``indices`` and ``values`` may lie in files."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: NDArray[np.float32]


ReadEntries = Callable[[], Iterator[Entries]]
"""Reads all entries from the first on; called twice."""


def into_rows(
    read: ReadEntries, shape: tuple[int, int], n_entries: int, reading: Reading
) -> Generator[SparseRows, None, Compressed]:
    """The matrix by row. Entries of a row keep the order in which they come.

    For each slice it yields no rows, so that the caller may stop there.
    """
    n_rows, n_features = shape
    nothing = SparseRows(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32), n_features)
    counts = np.zeros(n_rows + 1, np.int64)
    for entries in read():
        rows, times = np.unique(entries.rows, return_counts=True)
        counts[rows + 1] += times
        yield nothing
    indptr = np.cumsum(counts)
    indices, values = (_storage(reading, dtype, n_entries) for dtype in (np.uint32, np.float32))
    following = indptr[:-1].copy()
    for entries in read():
        order = np.argsort(entries.rows, kind="stable")
        rows, firsts, times = np.unique(entries.rows[order], return_index=True, return_counts=True)
        places = np.repeat(following[rows] - firsts, times) + np.arange(len(order))
        indices[places], values[places] = entries.columns[order], entries.values[order]
        following[rows] += times
        yield nothing
    return Compressed(indptr, indices, values)


def summed(indptr: NDArray[np.int64], indices: NDArray[np.uint32], values: NDArray[np.float32]) -> Compressed:
    """The rows with repeated entries added up, as coordinates mean them, and the columns of each row in order."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((indices, rows))
    rows, indices, values = rows[order], indices[order], values[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (indices[1:] != indices[:-1])
    starts = np.flatnonzero(first)
    added = np.add.reduceat(values, starts) if len(starts) else values
    kept = np.concatenate([[0], np.cumsum(np.bincount(rows[starts], minlength=len(indptr) - 1))])
    return Compressed(kept.astype(np.int64), indices[starts], added.astype(np.float32))


def checked_places(array: Array, numbers: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Numbers of rows or columns; raises InvalidDocuments unless they lie from 0 to ``most`` - 1."""
    if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < most):
        raise invalid_array(array.name, f"must lie from 0 to {most - 1}")
    return numbers.astype(np.int64)


def _storage(reading: Reading, dtype: type, count: int) -> NDArray[Any]:
    file = reading.spool()
    if file is None or not count:
        reading.reserve(count * np.dtype(dtype).itemsize)
        return np.zeros(count, dtype)
    file.truncate(count * np.dtype(dtype).itemsize)
    return np.memmap(file, dtype, "r+", shape=(count,))


def side_by_side(one: Iterator[Rows], other: Iterator[Rows]) -> Iterator[Rows]:
    """The documents, each with the parts of both. Slices without rows are passed on: after each the caller may stop.

    Both streams are read to their ends. They must have equally many rows in all.
    """
    rows: Rows | None = None
    for left in other:
        if not left.n_rows:
            yield left
        while left.n_rows:
            while rows is None or not rows.n_rows:
                rows = next(one)
                if not rows.n_rows:
                    yield rows
            count = min(rows.n_rows, left.n_rows)
            yield PartRows({**parts_of(rows.between(0, count)), **parts_of(left.between(0, count))})
            rows, left = rows.between(count, rows.n_rows), left.between(count, left.n_rows)
    yield from one
