"""Which job an idempotency key made: ``idempotency/{sha256 of the key}.json``."""

import hashlib

from workers.contract import Record
from workers.errors import IdempotencyConflict
from workers.store import Store, records


class _Claim(Record):
    """A key stands for this job, made of a request with this fingerprint."""

    job: str
    fingerprint: str


class IdempotencyKeys:
    """The idempotency keys of a store, known by their digests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, key: str, job: str, fingerprint: str) -> str:
        """Let a key stand for a job, and return the job that it stands for: of many the first. Raises IdempotencyConflict."""
        if records.create(self._store, _path(digest_of(key)), _Claim(job=job, fingerprint=fingerprint)):
            return job
        return self.find(key, fingerprint) or job

    def find(self, key: str, fingerprint: str) -> str | None:
        """The job that a key stands for, if any; raises IdempotencyConflict when the key was used with another fingerprint."""
        first = records.find(self._store, _path(digest_of(key)), _Claim)
        if first is not None and first.fingerprint != fingerprint:
            raise IdempotencyConflict(key)
        return None if first is None else first.job

    def free(self, digest: str) -> None:
        """Free a key."""
        self._store.delete(_path(digest))


def digest_of(key: str) -> str:
    """Under what a key is stored: it may be long or tell something."""
    return hashlib.sha256(key.encode()).hexdigest()


def _path(digest: str) -> str:
    return f"idempotency/{digest}.json"
