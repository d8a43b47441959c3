"""Quota of all datasets together: their number and their bytes."""

import sys
import threading

from storage.errors import QuotaExceeded
from storage.records import Dataset
from storage.store import Store, json_records
from storage.store.json_records import in_parallel


class Quota:
    """Quota of a store, by a count of its datasets and their bytes; by default there is none.

    Uploads at the same time do not see each other until they are sealed. Then each is counted: only gateways that seal
    in the same moment may exceed the quota. Manifests never change, so each is read once, until ``recount``: after
    another process has deleted a dataset its folder stays if its documents are shared.
    """

    def __init__(self, store: Store, datasets: int = sys.maxsize, bytes: int | None = None) -> None:
        self._store = store
        self._datasets = datasets
        self._most_bytes = bytes or sys.maxsize
        self._known: dict[str, dict[str, int]] = {}
        self._sealing: dict[str, dict[str, int]] = {}
        self._lock = threading.RLock()

    def left(self, wanted: int = 1) -> int:
        """Bytes that one more dataset may take; raises QuotaExceeded for a dataset too many, and if fewer are left than
        are wanted.
        """
        # without a quota nothing is read
        count, used = self.used() if min(self._datasets, self._most_bytes) < sys.maxsize else (0, 0)
        if count >= self._datasets:
            raise QuotaExceeded("datasets", self._datasets)
        if used + wanted > self._most_bytes:
            raise QuotaExceeded("bytes of datasets", self._most_bytes)
        return self._most_bytes - used

    def seal(self, dataset: Dataset) -> None:
        """Create the manifest of a dataset, whose files are there; raises QuotaExceeded.

        From here on it counts for all others, however long the store takes to create it.
        """
        with self._lock:
            self.left(sum(file.bytes for file in dataset.files.values() if file.key.split("/")[1] == dataset.id))
            self._sealing[dataset.id] = _sizes(dataset)
        try:
            json_records.create(self._store, f"datasets/{dataset.id}/manifest.json", dataset)
        finally:
            with self._lock:
                del self._sealing[dataset.id]

    def recount(self) -> None:
        """Read all manifests again at the next count."""
        with self._lock:
            self._known.clear()

    def used(self) -> tuple[int, int]:
        """Number of datasets, and bytes of their files; files that several datasets share count once."""
        with self._lock:
            ids = set(self._store.children("datasets"))
            for id in self._known.keys() - ids:
                del self._known[id]
            keys = [f"datasets/{id}/manifest.json" for id in ids - self._known.keys()]
            for dataset in in_parallel(lambda key: json_records.find_readable(self._store, key, Dataset), keys):
                if dataset is not None:
                    self._known[dataset.id] = _sizes(dataset)
            counted = self._known | self._sealing
            files = {key: size for sizes in counted.values() for key, size in sizes.items()}
            return len(counted), sum(files.values())


def _sizes(dataset: Dataset) -> dict[str, int]:
    """Bytes of its files, by their keys."""
    return {file.key: file.bytes for file in dataset.files.values()}
