"""Documents that were suggested to be labeled, or found by a search, so that their labels, which come later, say how they were come by.

datasets/{documents}/suggested/{sha256}.json  documents that one answer suggested for the first time, by their positions

Relabeled datasets share these records with the documents. A document is in at most one record for each way in which it was suggested, so the records
do not grow beyond the dataset, however often documents are suggested. They are deleted with the documents.
"""

import hashlib
from collections.abc import Iterator, Mapping

from core.documents.drawn import Draw
from workers.contract import Suggested
from workers.store import Store, records
from workers.store.parallel import in_parallel

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
        keys = [f"{_folder(documents)}/{name}" for name in self._store.children(_folder(documents))]
        known = {key: record for key in keys if (record := self._records.get(key)) is not None}
        unknown = [key for key in keys if key not in known]
        # the documents may be deleted meanwhile; of a damaged record only the ways in which labels were come by are lost
        read = in_parallel(lambda key: records.find_readable(self._store, key, Suggested), unknown)
        known |= {key: record for key, record in zip(unknown, read, strict=True) if record is not None}
        if len(self._records) + len(unknown) > _CACHED_RECORDS:
            self._records.clear()
        self._records.update(known)
        return iter(known.values())


def _positions(suggested: Mapping[int, Draw], wanted: Draw) -> set[int]:
    return {position for position, draw in suggested.items() if draw is wanted}


def _folder(documents: str) -> str:
    return f"datasets/{documents}/suggested"
