"""Idempotency keys: a request that is repeated with the same key makes one job.

idempotency/{sha256 of caller and key}.json  the job of the key, and a fingerprint of its request; created before the request is stored
"""

import hashlib
from contextlib import suppress

from workers.contract import Record
from workers.errors import IdempotencyConflict, StoreDamaged
from workers.store import Store, records


class Claim(Record):
    """Claim of a job to a key, with the fingerprint of its request."""

    job: str
    fingerprint: str

    def check(self, key: str, fingerprint: str) -> None:
        """Raises IdempotencyConflict for a request with another fingerprint."""
        if self.fingerprint != fingerprint:
            raise IdempotencyConflict(key)


class IdempotencyKeys:
    """Idempotency keys of a store, by their digests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, key: str, caller: str | None, job: str, fingerprint: str) -> str:
        """Claim a key of a caller for a job; returns the job that has it, which of many is the first. Raises IdempotencyConflict."""
        digest = digest_of(key, caller)
        while not records.create(self._store, _path(digest), Claim(job=job, fingerprint=fingerprint)):
            first = self.find(digest)
            if first is not None:  # else it was freed in between
                first.check(key, fingerprint)
                return first.job
        return job

    def find(self, digest: str) -> Claim | None:
        """The claim to the key of this digest, None if it is free."""
        return records.find(self._store, _path(digest), Claim)

    def held(self, key: str, caller: str | None, job: str) -> bool:
        """Whether a key of a caller belongs to a job."""
        claim = self.find(digest_of(key, caller))
        return claim is not None and claim.job == job

    def free(self, digest: str, job: str) -> None:
        """Free the key of this digest, unless it was freed before and another job has it by now.

        Of two that free it at once one may be so late that it frees the key of that other job: stores have no deletion on a condition.
        """
        with suppress(StoreDamaged):
            claim = self.find(digest)
            if claim is None or claim.job != job:
                return
        self._store.delete(_path(digest))


def digest_of(key: str, caller: str | None) -> str:
    """Digest under which a key of a caller is stored, since the key may be long or confidential. Callers choose their keys apart."""
    return hashlib.sha256((key if caller is None else f"{caller}\0{key}").encode()).hexdigest()


def _path(digest: str) -> str:
    return f"idempotency/{digest}.json"
