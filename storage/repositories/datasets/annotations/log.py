"""Append-only logs of annotations: each dataset has one.

datasets/{id}/annotations/{first}.json  entries that were appended together; the name is the number of the first of them
datasets/{id}/merged/{first}.json       the entries of many consecutive records, read in place of these

Numbers of entries begin with 1 and have no gaps. The name of the next record follows from the record before, and one
writer of many creates it: so nothing is lost or kept twice, whatever dies, and however many processes append at once. A
writer that was not first reads what the other has appended, leaves out what is there already, and tries the next name.

Entries of a record that cannot be read are left out, and keep their numbers: the name of the record after it says how
many they are. After the last record nobody can know that, so nothing is appended until it was repaired: a writer that
can still read it would append at another number.

Records never change, and merged entries end with the first record by which there are enough of them: so all who merge
make the same. The records stay. Entries that are not merged, or cannot be read merged, are read from them.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock

from storage.errors import LimitExceeded, StoreDamaged, StoreUnavailable
from storage.records import labels_in
from storage.repositories.datasets.annotations.answers import AggregatedAnswers, Annotation, Annotations, Answer
from storage.store import KeyMissing, Store, json_records
from storage.store.json_records import in_parallel

ENOUGH = 1_000
"""Entries from which on records are merged."""
_DIGITS = 10
NAME = re.compile(rf"\d{{{_DIGITS}}}\.json")
"""Names of records: the number of their first entry."""


def name_of(first: int) -> str:
    """The name of a record, by the number of its first entry."""
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
        """The merged entries, from the first entry of the log on. Raises StoreUnavailable."""
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
        """Merge the entries of a log, given whole, as far as there are enough. It may fail: then it is tried with the
        next record.
        """
        with suppress(StoreUnavailable):
            for end in tuple(self._ends):
                if end - self._end >= ENOUGH:
                    together = Annotations(entries=[entry for entry in entries[self._end : end] if entry is not None])
                    json_records.create(self._store, f"{self._folder}/{name_of(self._end + 1)}", together)
                    self._end = end
                    self._ends = [each for each in self._ends if each > end]


MAX_ENTRIES = 500_000
"""Entries of one log."""
_READ_AT_A_TIME = 1_024


class AnnotationLog:
    """The log of one dataset, as far as this process has read it."""

    def __init__(self, store: Store, dataset: str) -> None:
        self._store = store
        self._folder = f"datasets/{dataset}/annotations"
        self._merged = Merged(store, dataset)
        self._lock = Lock()
        self._entries: list[Annotation | None] = []
        """entries, None for those that cannot be read"""
        self._unread: set[str] = set()
        """keys of the records that could not be read"""
        self._ids: set[str] = set()
        self._answers = AggregatedAnswers()
        self.label_type: type | None = None
        """type of the labels that were given so far, None before the first"""

    def __len__(self) -> int:
        return len(self._entries)

    def refreshed(self) -> int:
        """Number of entries now; raises StoreUnavailable."""
        with self._current():
            return len(self._entries)

    @contextmanager
    def _current(self) -> Iterator[None]:
        """The log as it is now, for as long as nobody else reads on; raises StoreUnavailable."""
        with self._lock:
            self._refresh()
            yield

    def append(self, entries: Sequence[Annotation]) -> tuple[int, int]:
        """Append the entries with new ids; the number of entries then, and how many were new.

        Raises LimitExceeded, StoreDamaged.
        """
        with self._lock:
            while True:
                damaged = self._refresh()
                if damaged is not None:
                    raise damaged
                # those with ids that are not in the log, each id once
                first = {entry.id: entry for entry in reversed(entries)}
                fresh = [entry for entry in entries if entry.id not in self._ids and first[entry.id] is entry]
                if not fresh:
                    return len(self._entries), 0
                if len(self._entries) + len(fresh) > MAX_ENTRIES:
                    raise LimitExceeded(
                        "annotations of a dataset", MAX_ENTRIES, "continue with a dataset that has them as its labels"
                    )
                if json_records.create(self._store, self._next_key(), Annotations(entries=fresh)):
                    self._add_record(fresh)
                    self._merged.merge(self._entries)
                    return len(self._entries), len(fresh)

    def between(self, after: int, limit: int) -> list[tuple[int, Annotation]]:
        """The ``limit`` entries after entry ``after``, with their numbers, without unreadable ones."""
        with self._current():
            found = enumerate(self._entries[after : after + limit], after + 1)
            return [(number, entry) for number, entry in found if entry is not None]

    def answers(self, number: int | None = None) -> dict[int, Answer]:
        """The answers by the positions of their documents, from all entries or from the first ``number``."""
        with self._current():
            if number is None or number == len(self._entries):
                return self._answers.now()
            earlier = self._entries[:number]
        answers = AggregatedAnswers()
        answers.add(earlier)
        return answers.now()

    def changed(self) -> int:
        """Number of the last entry that changed a label; 0 if none did."""
        with self._current():
            return self._answers.changed

    def batch(self, name: str) -> list[Annotation]:
        """The entries that were appended as the batch of this name."""
        with self._current():
            return [entry for entry in self._entries if entry is not None and entry.batch == name]

    def _refresh(self) -> StoreDamaged | None:
        """Read the entries appended since; the damage of the last record, if it cannot be read.

        At first, and after a repair, all records are read at once: from a bucket, one after the other would take
        minutes.
        """
        # one that was removed stays noted as missing, so it is not read
        if any(
            self._store.exists(key) and json_records.find_readable(self._store, key, Annotations)
            for key in self._unread
        ):
            self._entries, self._ids, self._answers, self.label_type = [], set(), AggregatedAnswers(), None
            self._unread.clear()
        if not self._entries:
            for entries in self._merged.read():
                self._add(entries)
            self._read_all()
        while True:
            try:
                record = json_records.read(self._store, self._next_key(), Annotations)
            except KeyMissing:
                return None
            except StoreDamaged as error:
                before = len(self._entries)
                self._read_all()
                if len(self._entries) == before:  # nothing after it can be read
                    return error
            else:
                self._add_record(record.entries)

    def _read_all(self) -> None:
        """Read all records that are not known yet but a last one that cannot be read.

        Raises StoreDamaged for a name that overlaps another record.
        """
        last = self._next_key(-1).rpartition("/")[2]
        names = [name for name in self._store.children(self._folder, last) if NAME.fullmatch(name)]
        # no more in memory than is read at a time
        for start in range(0, len(names), _READ_AT_A_TIME):
            keys = [f"{self._folder}/{name}" for name in names[start : start + _READ_AT_A_TIME]]
            found = in_parallel(lambda key: json_records.find_readable(self._store, key, Annotations), keys)
            for key, record in zip(keys, found, strict=True):
                if record is None:
                    self._unread.add(key)
                else:
                    self._leave_out_before(key)
                    self._add_record(record.entries)

    def _leave_out_before(self, key: str) -> None:
        """Give the entries their numbers that lie before this record and cannot be read."""
        missing = int(key.rpartition("/")[2].removesuffix(".json")) - 1 - len(self._entries)
        if missing < 0:
            raise StoreDamaged(key, "the record before it has its number")
        expected = self._next_key()
        if missing and expected not in self._unread:  # somebody has removed it
            self._store.damage.add(StoreDamaged(expected, "it is missing"), lambda: self._look_for(expected))
            self._unread.add(expected)
        self._entries += [None] * missing
        self._answers.add([None] * missing)

    def _look_for(self, key: str) -> None:
        """Raises StoreDamaged if a record is missing in a log that exists, KeyMissing if the log was deleted."""
        try:
            self._store.read(key)
        except KeyMissing:
            if self._store.children(self._folder, key.rpartition("/")[2]):
                raise StoreDamaged(key, "it is missing") from None
            raise

    def _add_record(self, entries: Sequence[Annotation]) -> None:
        self._merged.add(len(self._entries) + 1, len(entries))
        self._add(entries)

    def _add(self, entries: Sequence[Annotation]) -> None:
        self._entries += entries
        self._ids.update(entry.id for entry in entries)
        self._answers.add(entries)
        if self.label_type is None:
            self.label_type = next((type(label) for entry in entries for label in labels_in(entry.given)), None)

    def _next_key(self, offset: int = 0) -> str:
        return f"{self._folder}/{name_of(len(self._entries) + 1 + offset)}"
