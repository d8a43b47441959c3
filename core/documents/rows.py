"""Sparse documents as rows: compressed sparse row (CSR) arrays, their checks, and the places of their copies.

Conventions: row ``i`` owns the slice ``indptr[i]:indptr[i + 1]`` of ``indices`` and ``values``; indices are 0-based,
strictly ascending in a row, and below ``n_features``. Unsigned indices and float32 values halve the memory traffic of a
pass; sums are taken in float64.

Dense documents are rows that store every feature (FullRows): their indices go without saying, so a number takes 4 bytes
instead of 8. Copies lie in memory, or in files that are mapped into it.
"""

import mmap
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from core.errors import MAX_FAULTS, Fault

_PAGE_OUT = 21
"""MADV_PAGEOUT of Linux 5.4, which Python does not name: forget pages that a file still has"""


class Space(Protocol):
    """Makes the arrays of copies of rows. Each is released with its last reference."""

    def zeros(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """An array of zeros of shape (count,)."""


class _Memory:
    """The memory of this process."""

    def zeros(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """See Space."""
        return np.zeros(count, dtype)


MEMORY: Space = _Memory()


class Pages:
    """The pages of a mapped array: which the system is to read ahead, and which it may forget.

    Of an array in memory there are none.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._map, self._first, self._itemsize = _map_of(array), 0, array.itemsize
        if self._map is not None:
            whole = np.frombuffer(self._map, np.uint8)
            self._first = array.ctypes.data - whole.ctypes.data

    def read_ahead(self, start: int, stop: int) -> None:
        """Begin to read elements ``start`` to ``stop`` into the page cache."""
        self._advise(mmap.MADV_WILLNEED, start, stop)

    def release(self, start: int, stop: int) -> None:
        """Count these elements no longer as memory of this process. Their file keeps them."""
        self._advise(mmap.MADV_DONTNEED, start, stop)

    def forget(self, start: int, stop: int) -> None:
        """Drop these elements from the page cache, so that they do not displace the elements that are read next."""
        self._advise(_PAGE_OUT, start, stop)
        self.release(start, stop)

    def _advise(self, advice: int, start: int, stop: int) -> None:
        if self._map is None or stop <= start:
            return
        first = (self._first + start * self._itemsize) // mmap.PAGESIZE * mmap.PAGESIZE
        with suppress(OSError):  # advice that this system does not know
            self._map.madvise(advice, first, self._first + stop * self._itemsize - first)


def _map_of(array: NDArray[Any]) -> mmap.mmap | None:
    """The map of the file in which an array lies."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


_SLICE = 1 << 21
MAX_FEATURES = 2**31
"""bound on indices, so that every reader of the wire formats can hold them"""


class SparseRows(NamedTuple):
    """CSR matrix of shape (n_rows, n_features)."""

    indptr: NDArray[np.int64]
    """shape (n_rows + 1,), ascending from 0"""
    indices: NDArray[np.uint32]
    """shape (n_nonzeros,)"""
    values: NDArray[np.float32]
    """shape (n_nonzeros,)"""
    n_features: int

    @classmethod
    def empty(cls, n_rows: int, n_features: int) -> "SparseRows":
        """Rows without values."""
        return cls(np.zeros(n_rows + 1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32), n_features)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def n_nonzeros(self) -> int:
        """Number of stored values in these rows."""
        return int(self.indptr[-1] - self.indptr[0])

    @property
    def csr(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]:
        """The three arrays, as compiled loops take them."""
        return self.indptr, self.indices, self.values

    @property
    def trimmed(self) -> "SparseRows":
        """These rows alone, as views: ``indptr`` begins at 0, and the other arrays hold no other rows."""
        first, last = int(self.indptr[0]), int(self.indptr[-1])
        return SparseRows(self.indptr - first, self.indices[first:last], self.values[first:last], self.n_features)

    @property
    def owners(self) -> NDArray[np.int64]:
        """shape (n_nonzeros,): the row of each value, counted from the first."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    def keeping(self, mask: NDArray[np.bool_]) -> "SparseRows":
        """A copy with the values alone that ``mask`` chooses, shape (n_nonzeros,)."""
        own, before = self.trimmed, np.concatenate([[0], np.cumsum(mask)]).astype(np.int64)
        return SparseRows(before[own.indptr], own.indices[mask], own.values[mask], self.n_features)

    def columns(self, start: int, stop: int) -> NDArray[np.uint32]:
        """The columns of the stored values from position ``start`` to ``stop``."""
        return self.indices[start:stop]

    def between(self, start: int, stop: int) -> "SparseRows":
        """Rows ``start`` to ``stop`` as a view: ``indptr`` keeps its offsets into the shared arrays."""
        return self._replace(indptr=self.indptr[start : stop + 1])

    def taken(self, positions: NDArray[np.int64]) -> "SparseRows":
        """A copy of these rows, in that order.

        For many rows core.documents.reorder.gathered takes a tenth of the time.
        """
        indptr, where = taken_places(self.indptr, positions)
        return SparseRows(indptr, self.indices[where], self.values[where], self.n_features)

    def held(self, start: int, stop: int) -> NDArray[np.bool_]:
        """shape (n_rows,): whether a row has a value that is not zero in the columns from ``start`` to ``stop``."""
        found = np.zeros(self.n_rows, bool)
        for first, last in self.slices(_SLICE):
            ends = self.indptr[first : last + 1]
            columns, values = self.columns(int(ends[0]), int(ends[-1])), self.values[int(ends[0]) : int(ends[-1])]
            counts = np.concatenate([[0], np.cumsum((columns >= start) & (columns < stop) & (values != 0))])
            found[first:last] = np.diff(counts[ends - ends[0]]) > 0
        return found

    def followed_by(self, others: "SparseRows") -> "SparseRows":
        """A copy of these rows, and after them of others in the same columns."""
        own, after = self.trimmed, others.trimmed
        return SparseRows(
            np.concatenate([own.indptr, own.n_nonzeros + after.indptr[1:]]),
            np.concatenate([own.indices, after.indices]),
            np.concatenate([own.values, after.values]),
            self.n_features,
        )

    def slices(self, size: int, row: int = 1) -> Iterator[tuple[int, int]]:
        """Ranges of rows, in order, that make up all of them: each of about ``size``, unless a single row has more.

        A nonzero counts 1, and a row counts ``row`` more.
        """
        weight = self.indptr - self.indptr[0] + row * np.arange(len(self.indptr))
        bounds = np.unique(np.append(np.searchsorted(weight, np.arange(0, int(weight[-1]), size)), self.n_rows))
        yield from zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)


def taken_places(
    indptr: NDArray[np.int64], positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The offsets of the rows at these positions, in that order, and the places of their elements."""
    lengths = indptr[positions + 1] - indptr[positions]
    taken = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return taken, np.repeat(indptr[positions] - taken[:-1], lengths) + np.arange(taken[-1])


def to_dense(rows: SparseRows, columns: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
    """Rows as a dense matrix of shape (n_rows, n_features), given the column of each of their nonzeros; column
    n_features is left out.
    """
    dense = np.zeros((rows.n_rows, rows.n_features + 1), np.float32)
    dense[rows.owners, columns] = rows.values[rows.indptr[0] : rows.indptr[-1]]
    return dense[:, :-1]


def sorted_rows(rows: SparseRows) -> SparseRows:
    """The rows with ascending indices; ``rows`` itself if they ascend. Repeated indices stay, side by side."""
    falls, own = np.flatnonzero(_is_step(rows, np.greater)), rows.trimmed
    if not len(falls):
        return rows
    owner = np.unique(_row_of(rows, falls))
    lengths = own.indptr[owner + 1] - own.indptr[owner]
    # positions of all nonzeros of the rows that need sorting, row after row
    offsets = np.cumsum(lengths) - lengths
    where = np.arange(lengths.sum()) + np.repeat(own.indptr[owner] - offsets, lengths)
    indices, values = own.indices.copy(), own.values.copy()
    keys = (np.repeat(np.arange(len(owner), dtype=np.uint64), lengths) << np.uint64(32)) | indices[where]
    order = where[np.argsort(keys, kind="stable")]
    indices[where], values[where] = indices[order], values[order]
    return own._replace(indices=indices, values=values)


def without_zeros(rows: SparseRows) -> SparseRows:
    """The rows without stored zeros; ``rows`` itself if it has none."""
    kept = rows.trimmed.values != 0
    return rows if kept.all() else rows.keeping(kept)


def to_float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The values as float32, those that lie beyond its range as its largest."""
    return np.clip(values, np.finfo(np.float32).min, np.finfo(np.float32).max).astype(np.float32)


def unit_rows(rows: SparseRows) -> SparseRows:
    """The rows scaled to length 1; empty ones stay empty."""
    own, owners = rows.trimmed, rows.owners
    values = own.values.astype(np.float64)
    # by their largest value first: squares of large and small ones leave the range of numbers
    largest = np.zeros(rows.n_rows)
    np.maximum.at(largest, owners, np.abs(values))
    values /= np.where(largest > 0, largest, 1.0)[owners]
    # summed in sequence, so that the processor has no say in it
    lengths = np.sqrt(np.bincount(owners, values * values, rows.n_rows))
    return own._replace(values=(values / np.where(lengths > 0, lengths, 1.0)[owners]).astype(np.float32))


def is_faultless(rows: SparseRows) -> bool:
    """Whether ``find_faults`` would find nothing, at less cost: a prediction of one row must be fast."""
    if layout_fault(rows) is not None:
        return False
    held = slice(int(rows.indptr[0]), int(rows.indptr[-1]))
    indices = rows.indices[held]
    if not len(indices):
        return True
    # a single row is looked at without the ends of rows, and ends with its largest index
    steps = _is_step(rows, np.greater_equal) if rows.n_rows > 1 else indices[:-1] >= indices[1:]
    if steps.any() or int(indices.max() if rows.n_rows > 1 else indices[-1]) >= rows.n_features:
        return False
    return bool(np.isfinite(rows.values[held]).all())


def find_faults(rows: SparseRows, limit: int = MAX_FAULTS) -> list[Fault]:
    """At most ``limit`` faults, in order of the rows; ``Fault.document`` is the row.

    The arrays must fit each other; if they do not, nothing else is checked. Indices must ascend in a row without
    repetition and lie below ``n_features``. Values must be finite. Four passes over the nonzeros, no Python by the row.
    """
    wrong = layout_fault(rows)
    if wrong is not None:
        return [wrong]
    _, indices, values = rows.trimmed.csr
    found: list[tuple[int, str, str]] = []
    steps = np.flatnonzero(_is_step(rows, np.greater_equal))[:limit]
    for row, position in zip(_row_of(rows, steps), steps, strict=True):
        index, following = int(indices[position]), int(indices[position + 1])
        detail = (
            f"index {index} is repeated"
            if index == following
            else f"index {following} comes after {index}: indices must ascend"
        )
        found.append((int(row), "indices", detail))
    if len(indices) and int(indices.max()) >= rows.n_features:
        beyond = np.flatnonzero(indices >= rows.n_features)[:limit]
        found += _faults(
            rows,
            beyond,
            "indices",
            [f"index {int(indices[p])} is not below the {rows.n_features} features" for p in beyond],
        )
    if not np.isfinite(values).all():
        odd = np.flatnonzero(~np.isfinite(values))[:limit]
        found += _faults(
            rows,
            odd,
            "values",
            [
                f"the value of index {int(indices[p])} is not a finite number, or beyond 3.4e38, the largest of float32"
                for p in odd
            ],
        )
    return [Fault(row, field, detail) for row, field, detail in sorted(found)[:limit]]


def layout_fault(rows: SparseRows) -> Fault | None:
    """The fault that keeps the three arrays from being one matrix, if there is one; the other functions take rows
    without it.
    """
    if not 0 <= rows.n_features <= MAX_FEATURES:
        return Fault("", "indices", f"{rows.n_features} features: must be 0 to {MAX_FEATURES}")
    if len(rows.indptr) == 0 or int(rows.indptr[0]) < 0:
        return Fault("", "indptr", "must start with a number that is not negative")
    shrinks = rows.indptr[1:] < rows.indptr[:-1]
    if shrinks.any():
        return Fault(int(shrinks.argmax()), "indptr", "must ascend")
    if len(rows.indices) != len(rows.values):
        return Fault("", "values", f"{len(rows.values)} values for {len(rows.indices)} indices")
    if int(rows.indptr[-1]) > len(rows.indices):
        return Fault("", "indptr", f"ends at {int(rows.indptr[-1])}, beyond the {len(rows.indices)} indices")
    return None


def _is_step(rows: SparseRows, wrong: np.ufunc) -> NDArray[np.bool_]:
    """shape (n_nonzeros - 1,): whether ``wrong`` holds for an index and the next one of the same row."""
    indptr, indices, _ = rows.trimmed.csr
    mask: NDArray[np.bool_] = wrong(indices[:-1], indices[1:])
    ends = indptr[1:-1]
    if len(ends):
        mask[ends[(ends > 0) & (ends < len(indices))] - 1] = False
    return mask


def _row_of(rows: SparseRows, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows that own nonzeros, given by their positions counted from the first."""
    following: NDArray[np.int64] = np.searchsorted(rows.indptr, positions + rows.indptr[0], side="right")
    return following - 1


def _faults(
    rows: SparseRows, positions: NDArray[np.int64], field: str, details: list[str]
) -> list[tuple[int, str, str]]:
    return [(int(row), field, detail) for row, detail in zip(_row_of(rows, positions), details, strict=True)]


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
