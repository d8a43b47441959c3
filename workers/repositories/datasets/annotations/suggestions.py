"""Documents that were suggested to be labeled, or found by a search, so that their labels, which come later, say how they were come by.

datasets/{documents}/suggested/{sha256}.json  documents that one answer suggested for the first time, by their positions

Relabeled datasets share these records with the documents. A document is in at most one record for each way in which it was suggested, so the records
do not grow beyond the dataset, however often documents are suggested. They are deleted with the documents.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress

from core.documents.drawn import Draw
from workers.contract import Suggested
from workers.errors import StoreDamaged
from workers.store import KeyMissing, Store, records

_CACHED_RECORDS = 10_000


class Suggestions:
    """The suggested documents of a store. Records never change, so they are cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, Suggested] = {}

    def of(self, documents: str) -> dict[int, Draw]:
        """How each document of these was suggested, by its position.

        What was suggested both ways counts as chosen: to be taken for random it would have to be labeled for that alone. What a search has found
        counts as found for the same reason.
        """
        known = list(self._all(documents))
        random = {position: Draw.RANDOM for record in known for position in record.random}
        found = {position: Draw.FOUND for record in known for position in record.found}
        return random | found | {position: Draw.CHOSEN for record in known for position in record.chosen}

    def record(self, documents: str, suggested: Mapping[int, Draw]) -> None:
        """Record documents, by position, that are suggested as random or as chosen ones, or that a search has found. Idempotent."""
        known = list(self._all(documents))
        chosen = _positions(suggested, Draw.CHOSEN).difference(*(record.chosen for record in known))
        random = _positions(suggested, Draw.RANDOM).difference(*(record.random for record in known))
        found = _positions(suggested, Draw.FOUND).difference(*(record.found for record in known))
        if chosen or random or found:
            data = records.encode(Suggested(chosen=sorted(chosen), random=sorted(random), found=sorted(found)))
            self._store.create(f"{_folder(documents)}/{hashlib.sha256(data).hexdigest()}.json", data)

    def _all(self, documents: str) -> Iterator[Suggested]:
        for name in self._store.children(_folder(documents)):
            # the documents may be deleted meanwhile; of a damaged record only the ways in which labels were come by are lost
            with suppress(KeyMissing, StoreDamaged):
                yield self._read(f"{_folder(documents)}/{name}")

    def _read(self, key: str) -> Suggested:
        record = self._records.get(key)
        if record is None:
            record = records.read(self._store, key, Suggested)
            if len(self._records) >= _CACHED_RECORDS:
                self._records.clear()
            self._records[key] = record
        return record


def _positions(suggested: Mapping[int, Draw], wanted: Draw) -> set[int]:
    return {position for position, draw in suggested.items() if draw is wanted}


def _folder(documents: str) -> str:
    return f"datasets/{documents}/suggested"
