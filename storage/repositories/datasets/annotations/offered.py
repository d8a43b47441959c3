"""Documents that were offered to be labeled: suggestions, and audits, which are random samples to measure models by.

datasets/{documents}/suggested/{sha256}.json  documents that one answer suggested for the first time, by position
datasets/{id}/audits/{audit}.json             an audit, by the positions of its documents

Labels of these documents come later, and say by the records how they were come by. Relabeled datasets share the
suggestions with the documents. A document is in at most one record for each way in which it was suggested, so the
records do not grow beyond the dataset. They are deleted with the documents.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress

from pydantic import AwareDatetime, Field

from core.documents.drawn import Draw
from storage.errors import NotFound, StoreDamaged
from storage.names import is_id
from storage.recent import Recent
from storage.records import Record
from storage.store import KeyMissing, Store, json_records
from storage.store.json_records import in_parallel


class Suggested(Record):
    """Documents that were suggested to be labeled, by position: ``datasets/{documents}/suggested/{sha256}.json``."""

    chosen: list[int]
    """those that a model chose, ascending"""
    random: list[int]
    """those that were drawn at random, ascending"""
    found: list[int] = Field(default=[])
    """those that a search has found, ascending"""


class Audit(Record):
    """Random sample of the documents that had no label: ``datasets/{id}/audits/{audit}.json``."""

    id: str
    dataset: str
    positions: list[int]
    """positions of the documents, in the order in which they were drawn: every beginning is a random sample"""
    unlabeled: int
    """number of documents that had no label then, of which these were drawn"""
    seed: int
    model: str | None = None
    """name of the model that the audit is for, if that was said"""
    annotations: int
    """number of entries in the log of the dataset then"""
    created_at: AwareDatetime


_CACHED_RECORDS = 10_000
_FIELDS = {Draw.RANDOM: "random", Draw.FOUND: "found", Draw.CHOSEN: "chosen"}
"""fields of ``Suggested``; what stands in several counts as the last of them"""


class SuggestedDocuments:
    """The suggested documents of a store. Records never change, so they are cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: Recent[str, Suggested] = Recent(_CACHED_RECORDS)

    def of(self, documents: str) -> dict[int, Draw]:
        """How each document of these was suggested, by its position.

        What was suggested both ways counts as chosen: to be taken for random it would have to be labeled for that
        alone. What a search has found counts as found for the same reason.
        """
        known = list(self._all(documents))
        return {
            position: draw for draw, field in _FIELDS.items() for record in known for position in getattr(record, field)
        }

    def record(self, documents: str, suggested: Mapping[int, Draw]) -> None:
        """Record documents, by position, that are suggested as random or as chosen ones, or that a search has found.

        Idempotent.
        """
        known = list(self._all(documents))
        fresh = {
            field: {position for position, each in suggested.items() if each is draw}.difference(
                *(getattr(record, field) for record in known)
            )
            for draw, field in _FIELDS.items()
        }
        if any(fresh.values()):
            data = json_records.encode(Suggested(**{field: sorted(positions) for field, positions in fresh.items()}))
            self._store.create(f"datasets/{documents}/suggested/{hashlib.sha256(data).hexdigest()}.json", data)

    def _all(self, documents: str) -> Iterator[Suggested]:
        keys = [
            f"datasets/{documents}/suggested/{name}" for name in self._store.children(f"datasets/{documents}/suggested")
        ]
        known = {key: record for key in keys if (record := self._records.get(key)) is not None}
        unknown = [key for key in keys if key not in known]
        # the documents may be deleted meanwhile; of a damaged record only the ways in which labels were come by are
        # lost
        read = in_parallel(lambda key: json_records.find_readable(self._store, key, Suggested), unknown)
        known |= {key: record for key, record in zip(unknown, read, strict=True) if record is not None}
        self._records.update(known)
        return iter(known.values())


class Audits:
    """The audits of a store. They never change, and are deleted with their dataset."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: Recent[str, Audit] = Recent(_CACHED_RECORDS)

    def create(self, audit: Audit) -> None:
        """Store an audit of a dataset that exists."""
        json_records.create(self._store, _key(audit.id, audit.dataset), audit)

    def get(self, dataset: str, id: str) -> Audit:
        """An audit of a dataset; raises NotFound."""
        if is_id("audit", id):
            with suppress(KeyMissing):
                return self._read(_key(id, dataset))
        raise NotFound("audit", id)

    def of(self, dataset: str) -> list[Audit]:
        """The audits of a dataset, oldest first."""
        found = []
        for name in self._store.children(f"datasets/{dataset}/audits"):
            # the dataset may be deleted meanwhile; a damaged audit keeps the others from nothing
            with suppress(KeyMissing, StoreDamaged):
                found.append(self._read(f"datasets/{dataset}/audits/{name}"))
        return found

    def drawn(self, dataset: str) -> set[int]:
        """Positions of all documents of a dataset that were drawn for an audit."""
        return {position for audit in self.of(dataset) for position in audit.positions}

    def _read(self, key: str) -> Audit:
        if key not in self._records:
            self._records[key] = json_records.read(self._store, key, Audit)
        return self._records[key]


def _key(audit: str, dataset: str) -> str:
    return f"datasets/{dataset}/audits/{audit}.json"
