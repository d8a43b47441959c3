"""The requests of unfinished jobs in short, by job: each is read once, since a request never changes."""

import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from storage.errors import StoreDamaged
from storage.records import JobRequest, Publication
from storage.store import KeyMissing, Store, json_records
from storage.store.bulk import in_parallel


class RequestSummary(NamedTuple):
    """What a job keeps from being deleted, and whose it is."""

    dataset: str
    start: Publication | None
    """version that it starts from"""
    caller: str | None
    """id of the API key of its request"""


class _Start(BaseModel):
    name: str
    version: int


class _Needs(BaseModel):
    """What a request names, whatever else it says: one of a newer release keeps its dataset all the same."""

    dataset: str
    start: _Start | None = None
    caller: str | None = None


class UnfinishedRequests:
    """The requests of the unfinished jobs of a store.

    With ten thousand that wait, a deletion looks at those that it concerns.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, RequestSummary] = {}
        self._lock = threading.Lock()

    def of(self, ids: Collection[str]) -> Mapping[str, RequestSummary]:
        """The requests of the jobs with these ids, which are all that are unfinished.

        A request that is missing is left out, and so is a damaged one of which not even this can be read.
        """
        with self._lock:
            wanted = set(ids)
            self._known = {id: known for id, known in self._known.items() if id in wanted}
            unknown = [id for id in ids if id not in self._known]
            for id, found in zip(unknown, in_parallel(self._read, unknown), strict=True):
                if found is not None:
                    self._known[id] = found
            return {id: self._known[id] for id in ids if id in self._known}

    def _read(self, id: str) -> RequestSummary | None:
        key = f"jobs/{id}/request.json"
        request: JobRequest | _Needs | None = json_records.find_readable(self._store, key, JobRequest)
        if request is None:
            with suppress(KeyMissing, StoreDamaged, ValidationError):
                request = _Needs.model_validate_json(self._store.read(key))
        if request is None:
            return None
        start = None if request.start is None else Publication(name=request.start.name, version=request.start.version)
        return RequestSummary(request.dataset, start, request.caller)
