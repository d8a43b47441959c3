"""Leases: which attempts at jobs are being run now, by whom. A lease is a key in Redis with a time to live.

holder   the worker process that runs the attempt
taken    by ``acquire``, before the attempt is claimed in the store; of many who try, one gets it
renewed  by the heartbeat of the attempt (``workers.worker.heartbeat``), four times within the time that a lease lasts
ended    by ``release`` when the attempt ends; by itself when the holder has died and renews it no more
read by  the reconciler (``storage.upkeep.reconcile``), which enqueues a job again that holds no lease; by workers,
before they claim an attempt

A lease saves work. It guarantees nothing: Redis may lose it, and a holder that was suspended may go on after its time.
Two attempts are kept apart by their numbers, which are fencing tokens, and by the store, which takes one outcome of a
job (see ``storage.repositories.jobs``).
"""

from redis import Redis

from storage.queue.connect import redis_errors

_DELETE_IF_EQUAL = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"


class Leases:
    """The leases of an installation, whose keys begin with ``namespace``.

    Every method raises RedisStateUnavailable when Redis does not answer.
    """

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace

    def acquire(self, job_id: str, attempt: int, holder: str, seconds: float) -> bool:
        """Take the lease of an attempt that no worker holds; false if one does."""
        with redis_errors():
            return bool(self._redis.set(self._key(job_id, attempt), holder, nx=True, px=_milliseconds(seconds)))

    def renew(self, job_id: str, attempt: int, holder: str, seconds: float) -> None:
        """Let the lease of an attempt last ``seconds`` from now on; after Redis has lost it, take it again."""
        with redis_errors():
            self._redis.set(self._key(job_id, attempt), holder, px=_milliseconds(seconds))

    def release(self, job_id: str, attempt: int, holder: str) -> None:
        """Give the lease of an attempt back before its time, unless another has it by now."""
        with redis_errors():
            self._redis.eval(_DELETE_IF_EQUAL, 1, self._key(job_id, attempt), holder)

    def revoke(self, job_id: str, attempt: int) -> None:
        """End the lease of an attempt that is known to be dead, whoever holds it."""
        with redis_errors():
            self._redis.delete(self._key(job_id, attempt))

    def held(self, job_id: str, attempt: int) -> bool:
        """Whether a worker that is alive runs this attempt."""
        with redis_errors():
            return bool(self._redis.exists(self._key(job_id, attempt)))

    def _key(self, job_id: str, attempt: int) -> str:
        return f"{self._namespace}:lease:{job_id}:{attempt}"


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
