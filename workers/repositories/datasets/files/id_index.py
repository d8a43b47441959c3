"""Positions of documents by their ids, without reading all ids for each question."""

from collections import OrderedDict
from collections.abc import Collection
from threading import Lock

import numpy as np

from workers.contract import Dataset
from workers.repositories.datasets.files.ids import Ids, line_hash

_MOST_IDS = 1 << 23
"""Ids of all datasets whose hashes are kept, 16 bytes each; beyond, those of the least recently used datasets are dropped."""


class IdIndex:
    """The ids of one set of documents, by their hashes. A hash is only a hint: the id at the position decides."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        if not ids.positional:
            hashes = ids.hashes()
            self._order = np.argsort(hashes, kind="stable")
            self._hashes = hashes[self._order]

    def __len__(self) -> int:
        return len(self._ids)

    def find(self, wanted: Collection[str]) -> dict[str, int]:
        """Positions of the documents with these ids; ids that no document has are left out."""
        if self._ids.positional:
            return {id: position for id in wanted if (position := _position(id, len(self._ids))) is not None}
        found = sorted((position, id) for id in wanted for position in self._candidates(id))
        names = self._ids.at([position for position, _ in found])
        return {id: position for (position, id), name in zip(found, names, strict=True) if name == id}

    def _candidates(self, id: str) -> list[int]:
        hashed = np.int64(line_hash(id))
        first, last = np.searchsorted(self._hashes, hashed, "left"), np.searchsorted(self._hashes, hashed, "right")
        found: list[int] = self._order[first:last].tolist()
        return found


class IdIndexes:
    """Indexes of the datasets that were asked for last. Documents never change, so neither does an index."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[str, IdIndex] = OrderedDict()

    def of(self, dataset: Dataset, ids: Ids) -> IdIndex:
        """The index of a dataset, whose ids are open."""
        with self._lock:
            index = self._kept.get(dataset.documents)
        if index is None:
            index = IdIndex(ids)
        with self._lock:
            self._kept[dataset.documents] = index
            self._kept.move_to_end(dataset.documents)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > _MOST_IDS:
                self._kept.popitem(last=False)
        return index


def _position(id: str, count: int) -> int | None:
    """The position that an id says, None if it is none below ``count``. Python refuses to convert thousands of digits."""
    if not (len(id) <= len(str(count)) and id.isascii() and id.isdigit()):
        return None
    position = int(id)
    return position if str(position) == id and position < count else None
