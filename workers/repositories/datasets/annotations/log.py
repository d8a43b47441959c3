"""Append-only logs of what people did with the documents of datasets.

datasets/{id}/annotations/{first}.json  entries that were appended together; the name is the number of the first of them

Numbers of entries begin with 1 and have no gaps. The name of the next record follows from the record before, and one writer of many creates it: so
nothing is lost or kept twice, whatever dies, and however many processes append at once. A writer that was not first reads what the other has
appended, leaves out what is there already, and tries the next name.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Lock

from workers.contract import Annotation, Annotations
from workers.errors import LimitExceeded, StoreDamaged
from workers.repositories.datasets.annotations.answers import Answer, Answers
from workers.store import KeyMissing, Store, records

MAX_ENTRIES = 500_000
"""Entries of one log."""
_KEPT_ENTRIES = 1_000_000
"""Entries of all logs that a process keeps; beyond, it forgets the logs that were least recently used."""
_READERS = 16
_DIGITS = 10
_NAME = re.compile(rf"\d{{{_DIGITS}}}\.json")


class AnnotationLog:
    """The log of one dataset, as far as this process has read it."""

    def __init__(self, store: Store, dataset: str) -> None:
        self._store = store
        self._folder = f"datasets/{dataset}/annotations"
        self._lock = Lock()
        self._entries: list[Annotation] = []
        self._ids: set[str] = set()
        self._answers = Answers()
        self._label_type: type | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def refreshed(self) -> int:
        """Number of entries now; raises StoreUnavailable."""
        with self._lock:
            self._refresh()
            return len(self._entries)

    @property
    def label_type(self) -> type | None:
        """Type of the labels that were given so far, None before the first."""
        return self._label_type

    def append(self, entries: Sequence[Annotation]) -> tuple[int, int]:
        """Append entries but those whose ids the log has; the number of entries then, and how many were new. Raises LimitExceeded."""
        with self._lock:
            while True:
                self._refresh()
                fresh = self._fresh(entries)
                if not fresh:
                    return len(self._entries), 0
                if len(self._entries) + len(fresh) > MAX_ENTRIES:
                    raise LimitExceeded("annotations of a dataset", MAX_ENTRIES, "continue with a dataset that has them as its labels")
                if records.create(self._store, self._next_key(), Annotations(entries=fresh)):
                    self._add(fresh)
                    return len(self._entries), len(fresh)

    def between(self, after: int, limit: int) -> list[Annotation]:
        """At most ``limit`` entries after entry ``after``."""
        with self._lock:
            self._refresh()
            return self._entries[after : after + limit]

    def answers(self, number: int | None = None) -> dict[int, Answer]:
        """What people say of documents, by position: in all entries, or in the first ``number``."""
        with self._lock:
            self._refresh()
            if number is None or number == len(self._entries):
                return dict(self._answers)
            earlier = self._entries[:number]
        answers = Answers()
        answers.add(earlier)
        return dict(answers)

    def _fresh(self, entries: Sequence[Annotation]) -> list[Annotation]:
        """The entries whose ids are not in the log, each id once."""
        first = {entry.id: entry for entry in reversed(entries)}
        return [entry for entry in entries if entry.id not in self._ids and first[entry.id] is entry]

    def _refresh(self) -> None:
        """Read what was appended since. At first all records are read at once: from a bucket, one after the other would take minutes."""
        if not self._entries:
            self._read_all()
        while True:
            try:
                record = records.read(self._store, self._next_key(), Annotations)
            except KeyMissing:
                return
            self._add(record.entries)

    def _read_all(self) -> None:
        names = [name for name in self._store.children(self._folder) if _NAME.fullmatch(name)]
        with ThreadPoolExecutor(_READERS) as readers:
            # no more in memory than is read at a time
            for start in range(0, len(names), _READERS):
                keys = [f"{self._folder}/{name}" for name in islice(names, start, start + _READERS)]
                for key, record in zip(keys, readers.map(lambda key: records.read(self._store, key, Annotations), keys), strict=True):
                    if key != self._next_key():
                        raise StoreDamaged(key)
                    self._add(record.entries)

    def _add(self, entries: Sequence[Annotation]) -> None:
        self._entries += entries
        self._ids.update(entry.id for entry in entries)
        self._answers.add(entries)
        if self._label_type is None:
            self._label_type = next((type(entry.label) for entry in entries if entry.label is not None), None)

    def _next_key(self) -> str:
        return f"{self._folder}/{len(self._entries) + 1:0{_DIGITS}d}.json"


class AnnotationLogs:
    """The logs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._kept: OrderedDict[str, AnnotationLog] = OrderedDict()

    def of(self, dataset: str) -> AnnotationLog:
        """The log of a dataset, which exists."""
        with self._lock:
            log = self._kept.setdefault(dataset, AnnotationLog(self._store, dataset))
            self._kept.move_to_end(dataset)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > _KEPT_ENTRIES:
                self._kept.popitem(last=False)
            return log
