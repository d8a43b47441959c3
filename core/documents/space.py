"""The places of copies of rows: memory, or files mapped into it; and the pages of mapped arrays."""

import mmap
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

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
