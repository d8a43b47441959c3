"""How much all datasets together may take."""

import threading

from workers.contract import Dataset
from workers.errors import QuotaExceeded
from workers.store import Store, records


class Quota:
    """Counts the datasets of a store and their bytes, and refuses more than a store may have.

    What several uploads add at the same time is seen by none of the others until it is sealed, so the bounds may be passed by as much. Manifests
    never change, so each is read once, until ``recount``: the folder of a dataset that another process has deleted stays if its documents are shared.
    """

    def __init__(self, store: Store, datasets: int, bytes: int | None) -> None:
        self._store = store
        self._datasets = datasets
        self._most_bytes = bytes
        self._known: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()

    def left(self) -> int | None:
        """Bytes that one more dataset may take, None: any number. Raises QuotaExceeded where there may be no more."""
        count, used = self.used()
        if count >= self._datasets:
            raise QuotaExceeded("datasets", self._datasets)
        if self._most_bytes is None:
            return None
        if used >= self._most_bytes:
            raise QuotaExceeded("bytes of datasets", self._most_bytes)
        return self._most_bytes - used

    def recount(self) -> None:
        """Read all manifests again at the next count."""
        with self._lock:
            self._known.clear()

    def used(self) -> tuple[int, int]:
        """How many datasets there are, and the bytes of their files: those that several share once."""
        with self._lock:
            ids = set(self._store.children("datasets"))
            for id in self._known.keys() - ids:
                del self._known[id]
            for id in ids - self._known.keys():
                dataset = records.find(self._store, f"datasets/{id}/manifest.json", Dataset)
                if dataset is not None:
                    self._known[id] = {file.key: file.bytes for file in dataset.files.values()}
            files = {key: size for sizes in self._known.values() for key, size in sizes.items()}
            return len(self._known), sum(files.values())
