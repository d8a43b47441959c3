"""Idempotency keys: a request that is repeated with the same key makes one job.

idempotency/{sha256 of caller and key}.json  the job of the key, and a fingerprint of its request; created before the
request is stored
idempotency/{sha256}.{job}                   the job was deleted: the key stays its own while a request may come late

Requests of unfinished jobs are kept in short, by job: each is read once, since a request never changes.
"""

import hashlib
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from storage.errors import IdempotencyConflict, JobDeleted, StoreDamaged
from storage.names import is_id
from storage.records import Publication, Record
from storage.store import KeyMissing, Store, json_records
from storage.store.json_records import in_parallel


class IdempotencyKey(NamedTuple):
    """The key of a request, which its caller has chosen, and the fingerprint by which a repetition is recognized."""

    text: str
    caller: str | None
    """id of the API key"""
    fingerprint: str

    @property
    def digest(self) -> str:
        """Digest under which the key is stored, since it may be long or confidential. Callers choose keys apart."""
        text = self.text if self.caller is None else f"{self.caller}\0{self.text}"
        return hashlib.sha256(text.encode()).hexdigest()


class IdempotencyRecord(Record):
    """The job that has a key, with the fingerprint of its request."""

    job: str
    fingerprint: str

    def check(self, key: IdempotencyKey) -> None:
        """Raises IdempotencyConflict for a request with another fingerprint."""
        if self.fingerprint != key.fingerprint:
            raise IdempotencyConflict(key.text)


class IdempotencyKeys:
    """Idempotency keys of a store, by their digests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def take(self, key: IdempotencyKey, job: str) -> str:
        """Take a key for a job; returns the job that has it, which of many is the first.

        Raises IdempotencyConflict, JobDeleted.
        """
        digest = key.digest
        while not json_records.create(
            self._store, _path(digest), IdempotencyRecord(job=job, fingerprint=key.fingerprint)
        ):
            first = self.find(digest)
            if first is None:  # it was freed in between
                continue
            first.check(key)
            if self._store.exists(f"jobs/{first.job}/request.json"):
                return first.job
            # a deletion leaves its mark before it removes the request, and the key is free before the mark goes: with
            # neither it was never stored
            if self.retired(digest, first.job):
                raise JobDeleted(first.job)
            if self.find(digest) == first:
                return first.job
        return job

    def find(self, digest: str) -> IdempotencyRecord | None:
        """The job that has the key of this digest, None if it is free."""
        return json_records.find(self._store, _path(digest), IdempotencyRecord)

    def retire(self, digest: str | None, job: str) -> None:
        """Mark the job of a key as deleted.

        A request that comes late then neither makes it again nor gets the key for another.
        """
        if digest is not None:
            self._store.create(_mark(digest, job), b"")

    def retired(self, digest: str | None, job: str) -> bool:
        """Whether a job was deleted that has a key, or is about to be."""
        return digest is not None and self._store.exists(_mark(digest, job))

    def every_retired(self) -> Iterator[tuple[str, str]]:
        """Digests of keys with their jobs that were deleted."""
        names = (name.partition(".") for name in self._store.children("idempotency"))
        return ((digest, job) for digest, _, job in names if is_id("job", job))

    def forget(self, digest: str, job: str) -> None:
        """Free the key of a job that was deleted, unless it was freed before and another job has it by now.

        Of two that free it at once one may be so late that it frees the key of that other job: stores have no deletion
        on a condition.
        """
        # the mark goes last: a key without it would stand for a job that was never stored
        owner = None
        with suppress(StoreDamaged):
            owner = self.find(digest)
        if owner is None or owner.job == job:
            self._store.delete(_path(digest))
        self._store.delete(_mark(digest, job))


def _path(digest: str) -> str:
    return f"idempotency/{digest}.json"


def _mark(digest: str, job: str) -> str:
    return f"idempotency/{digest}.{job}"


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
