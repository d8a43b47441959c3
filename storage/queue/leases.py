"""Leases say which attempts at jobs are being run now, by whom.

A lease is a key in Redis with a time to live, and a value that each renewal changes.

holder   the worker process that runs the attempt
taken    by ``acquire``, before the attempt is claimed in the store; of many who try, one gets it
renewed  by the heartbeat of the attempt (``workers.worker.heartbeat``), four times within the time that a lease lasts
ended    by ``release`` when the attempt ends; by itself when the holder has died and renews it no more
held     while its value has changed within the time that a lease lasts, by the clock of the reader that nobody sets:
         Redis counts by the time of day, and keeps a key for a day longer if that is set back by a day
read by  the reconciler (``storage.upkeep.reconcile``), which enqueues a job again that holds no lease; by workers,
before they claim an attempt

A lease saves work. It guarantees nothing: Redis may lose it, and a holder that was suspended may go on after its time.
Two attempts are kept apart by their numbers, which are fencing tokens, and by the store, which takes one outcome of a
job (see ``storage.repositories.jobs``).
"""

import time
from typing import cast

from redis import Redis

from storage.queue.connection import redis_errors
from storage.recent import Recent

_MOST = 100_000
"""Leases that a reader remembers. One that is forgotten counts as new."""
_DELETE_IF_OF = """
local value = redis.call('get', KEYS[1])
if value and string.sub(value, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then return redis.call('del', KEYS[1]) end
"""


class Leases:
    """The leases of an installation, under keys that begin with ``namespace``.

    Every method raises RedisUnavailable when Redis does not answer.
    """

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace
        self._seen: Recent[str, tuple[bytes, float]] = Recent(_MOST)
        """value of each lease that was looked at, and since when it has been this one"""

    @redis_errors()
    def acquire(self, job_id: str, attempt: int, holder: str, seconds: float) -> bool:
        """Take the lease of an attempt that no worker holds; false if one does."""
        return bool(self._redis.set(self._key(job_id, attempt), _value(holder), nx=True, px=_milliseconds(seconds)))

    @redis_errors()
    def renew(self, job_id: str, attempt: int, holder: str, seconds: float) -> None:
        """Let the lease of an attempt last ``seconds`` from now on; after Redis has lost it, take it again."""
        self._redis.set(self._key(job_id, attempt), _value(holder), px=_milliseconds(seconds))

    @redis_errors()
    def release(self, job_id: str, attempt: int, holder: str) -> None:
        """Give the lease of an attempt back before its time, unless another has it by now."""
        self._redis.eval(_DELETE_IF_OF, 1, self._key(job_id, attempt), holder)

    @redis_errors()
    def revoke(self, job_id: str, *attempts: int) -> None:
        """End the leases of attempts that are known to be dead, whoever holds them."""
        self._redis.delete(*(self._key(job_id, attempt) for attempt in attempts))

    @redis_errors()
    def held(self, job_id: str, attempt: int, seconds: float) -> bool:
        """Whether a worker that is alive runs this attempt, where a lease lasts for ``seconds``."""
        key, now = self._key(job_id, attempt), time.monotonic()
        value = cast("bytes | None", self._redis.get(key))
        if value is None:
            return False
        if key not in self._seen or self._seen[key][0] != value:
            self._seen[key] = value, now
        return now - self._seen[key][1] <= seconds

    def _key(self, job_id: str, attempt: int) -> str:
        return f"{self._namespace}:lease:{job_id}:{attempt}"


def _value(holder: str) -> str:
    return f"{holder} {time.monotonic_ns()}"


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
