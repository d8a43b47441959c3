"""The requests of unfinished jobs in short, by job: each is read once, since a request never changes."""

import threading
from collections.abc import Collection, Mapping
from contextlib import suppress

from pydantic import BaseModel, ValidationError

from storage.errors import StoreDamaged
from storage.records import Publication
from storage.store import KeyMissing, Store
from storage.store.bulk import in_parallel


class RequestSummary(BaseModel):
    """The things that a job keeps from being deleted, and its owner.

    It can be read of requests of newer releases, too, which cannot be read otherwise.
    """

    dataset: str
    start: Publication | None = None
    """version that it starts from"""
    caller: str | None = None
    """id of the API key of its request"""


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
        with suppress(KeyMissing, StoreDamaged, ValidationError):
            return RequestSummary.model_validate_json(self._store.read(f"jobs/{id}/request.json"))
        return None
