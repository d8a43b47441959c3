"""Idempotency keys: a request that is repeated with the same key makes one job.

idempotency/{sha256 of the key}.json  the job of the key, and a fingerprint of its request; created before the request is stored
"""

import hashlib

from workers.contract import Record
from workers.errors import IdempotencyConflict
from workers.store import Store, records


class _Claim(Record):
    """Claim of a job to a key, with the fingerprint of its request."""

    job: str
    fingerprint: str


class IdempotencyKeys:
    """Idempotency keys of a store, by their digests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, key: str, job: str, fingerprint: str) -> str:
        """Claim a key for a job; returns the job that has it, which of many is the first. Raises IdempotencyConflict."""
        if records.create(self._store, _path(digest_of(key)), _Claim(job=job, fingerprint=fingerprint)):
            return job
        return self.find(key, fingerprint) or job

    def find(self, key: str, fingerprint: str) -> str | None:
        """Id of the job that has a key, None if the key is free; raises IdempotencyConflict if it was used with another fingerprint."""
        first = records.find(self._store, _path(digest_of(key)), _Claim)
        if first is not None and first.fingerprint != fingerprint:
            raise IdempotencyConflict(key)
        return None if first is None else first.job

    def free(self, digest: str) -> None:
        """Free the key of this digest."""
        self._store.delete(_path(digest))


def digest_of(key: str) -> str:
    """Digest under which a key is stored, since the key may be long or confidential."""
    return hashlib.sha256(key.encode()).hexdigest()


def _path(digest: str) -> str:
    return f"idempotency/{digest}.json"
