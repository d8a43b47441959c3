"""How mapped rows are read: the parts that come next ahead of time, and parts that do not fit into the page cache only
once.
"""

from typing import Protocol

from core.documents.rows import FullRows, SparseRows
from core.documents.space import Pages


class Reading(Protocol):
    """Is told of rows before a pass reads them, and after."""

    def ahead(self, start: int, stop: int) -> None:
        """Rows ``start`` to ``stop`` will be read soon."""

    def behind(self, start: int, stop: int) -> None:
        """These rows have been read, and will not be before the next pass."""


class _Resident:
    """Rows that are in memory anyway."""

    def ahead(self, start: int, stop: int) -> None:
        """See Reading."""

    def behind(self, start: int, stop: int) -> None:
        """See Reading."""


RESIDENT: Reading = _Resident()


class _Mapped:
    """Rows in files; the first ``resident_bytes`` may stay in the page cache."""

    def __init__(self, rows: SparseRows, resident_bytes: int | None) -> None:
        arrays = [rows.values] if isinstance(rows, FullRows) else [rows.indices, rows.values]
        self._indptr, self._pages = rows.indptr, [Pages(array) for array in arrays]
        self._bytes, self._resident_bytes = sum(array.itemsize for array in arrays), resident_bytes

    def ahead(self, start: int, stop: int) -> None:
        """See Reading."""
        for pages in self._pages:
            pages.read_ahead(*self._span(start, stop))

    def behind(self, start: int, stop: int) -> None:
        """See Reading."""
        first, last = self._span(start, stop)
        if self._resident_bytes is not None and (last - int(self._indptr[0])) * self._bytes > self._resident_bytes:
            for pages in self._pages:
                pages.forget(first, last)

    def _span(self, start: int, stop: int) -> tuple[int, int]:
        return int(self._indptr[start]), int(self._indptr[stop])


def reading_of(rows: SparseRows, resident_bytes: int | None) -> Reading:
    """The reading of mapped rows, with so many bytes that may stay in the page cache."""
    return _Mapped(rows, resident_bytes)
