"""Entries of many records of an annotation log, together in one: so a long log, of which each record has few, is read
by few calls.

datasets/{id}/merged/{first}.json  the entries of consecutive records, from number first on, which a reader takes
instead of these

Records never change, and what is merged ends with the first record by which there are enough entries: so all who merge
make the same. The records stay. What is not merged, or cannot be read merged, is read from them.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from storage.errors import StoreUnavailable
from storage.records import Annotation, Annotations
from storage.store import Store, json_records
from storage.store.bulk import in_parallel

ENOUGH = 1_000
"""Entries from which on records are merged."""
_DIGITS = 10
NAME = re.compile(rf"\d{{{_DIGITS}}}\.json")
"""Names of records: the number of their first entry."""


def name_of(first: int) -> str:
    """The name of the record whose first entry has this number."""
    return f"{first:0{_DIGITS}d}.json"


class Merged:
    """The merged entries of the log of one dataset."""

    def __init__(self, store: Store, dataset: str) -> None:
        self._store = store
        self._folder = f"datasets/{dataset}/merged"
        self._end = 0
        """number of the last entry that is known to be merged"""
        self._ends: list[int] = []
        """numbers of the last entries of the records after it, as far as none before them was unreadable"""

    def read(self) -> Iterator[list[Annotation]]:
        """What is merged, from the first entry of the log on. Raises StoreUnavailable."""
        self._end, self._ends = 0, []
        names = [name for name in self._store.children(self._folder) if NAME.fullmatch(name)]
        found = in_parallel(
            lambda name: json_records.find_readable(self._store, f"{self._folder}/{name}", Annotations), names
        )
        for name, record in zip(names, found, strict=True):
            if record is None or name != name_of(self._end + 1):
                return
            self._end += len(record.entries)
            yield record.entries

    def add(self, first: int, count: int) -> None:
        """Note a record that was read or appended. After one that could not be read nothing is merged."""
        if first == (self._ends[-1] if self._ends else self._end) + 1:
            self._ends.append(first + count - 1)

    def merge(self, entries: Sequence[Annotation | None]) -> None:
        """Merge what is enough of a log, given whole. It may fail: then it is tried with the next record."""
        with suppress(StoreUnavailable):
            for end in tuple(self._ends):
                if end - self._end >= ENOUGH:
                    together = Annotations(entries=[entry for entry in entries[self._end : end] if entry is not None])
                    json_records.create(self._store, f"{self._folder}/{name_of(self._end + 1)}", together)
                    self._end = end
                    self._ends = [each for each in self._ends if each > end]
