"""Audits: random samples of the documents of a dataset that had no label, to measure models by.

datasets/{id}/audits/{audit}.json  an audit, by the positions of its documents
"""

from contextlib import suppress

from workers.contract import Audit
from workers.errors import NotFound, StoreDamaged
from workers.names import is_id
from workers.store import KeyMissing, Store, records

_CACHED_RECORDS = 1_000


class Audits:
    """The audits of a store. They never change, and are deleted with their dataset."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, Audit] = {}

    def create(self, audit: Audit) -> None:
        """Store an audit, whose dataset exists."""
        records.create(self._store, _key(audit.dataset, audit.id), audit)

    def get(self, dataset: str, id: str) -> Audit:
        """An audit of a dataset; raises NotFound."""
        if is_id("audit", id):
            with suppress(KeyMissing):
                return self._read(_key(dataset, id))
        raise NotFound("audit", id)

    def of(self, dataset: str) -> list[Audit]:
        """The audits of a dataset, oldest first."""
        found = []
        for name in self._store.children(_folder(dataset)):
            # the dataset may be deleted meanwhile; a damaged audit keeps the others from nothing
            with suppress(KeyMissing, StoreDamaged):
                found.append(self._read(f"{_folder(dataset)}/{name}"))
        return found

    def drawn(self, dataset: str) -> set[int]:
        """Positions of all documents of a dataset that were drawn for an audit."""
        return {position for audit in self.of(dataset) for position in audit.positions}

    def _read(self, key: str) -> Audit:
        if key not in self._records:
            if len(self._records) >= _CACHED_RECORDS:
                self._records.clear()
            self._records[key] = records.read(self._store, key, Audit)
        return self._records[key]


def _folder(dataset: str) -> str:
    return f"datasets/{dataset}/audits"


def _key(dataset: str, id: str) -> str:
    return f"{_folder(dataset)}/{id}.json"
