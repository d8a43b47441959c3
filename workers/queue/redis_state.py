"""What may be lost, in Redis: progress, the trace so far, leases, cancel flags, which workers live.

Everything has a time to live. When Redis does not answer, every method raises RedisStateUnavailable.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from redis import Redis
from redis.exceptions import RedisError

from workers.contract import Progress
from workers.errors import RedisStateUnavailable
from workers.queue.connect import why

_KEPT_SECONDS = 3600
TRACE_POINTS = 10_000
"""How many points of a running job's trace are kept, the newest."""

TraceRow = dict[str, Any]
"""A point of a trace as JSON: ``phase``, ``iteration``, ``stage_objective``, ``objective``, ``fraction``, ``seconds``."""

ENDING_SECONDS = ("1", "5", "15", "60", "300", "900", "3600", "14400", "+Inf")
"""Bounds by which the times of jobs are counted, as Prometheus writes them."""


class Endings(NamedTuple):
    """Jobs of one algorithm that ended in one state."""

    seconds: float
    """in all"""
    within: dict[str, float]
    """by each bound, how many took no longer"""


class RedisState:
    """The running jobs as Redis knows them; ``namespace`` keeps installations that share a Redis apart."""

    def __init__(self, redis: Redis, namespace: str = "halfmoon") -> None:
        self._redis = redis
        self._namespace = namespace

    def publish_progress(self, job_id: str, progress: Progress, points: Sequence[TraceRow] = ()) -> None:
        """Tell where a job is, and the points that its trace has gained; tell whoever watches."""
        with _answering(), self._redis.pipeline(transaction=False) as pipe:
            pipe.set(self._key("progress", job_id), progress.model_dump_json(), ex=_KEPT_SECONDS)
            if points:
                trace = self._key("trace", job_id)
                pipe.rpush(trace, *(json.dumps(point) for point in points))
                pipe.ltrim(trace, -TRACE_POINTS, -1)
                pipe.expire(trace, _KEPT_SECONDS)
            pipe.execute()

    def progress(self, job_id: str) -> Progress | None:
        """Where a job is, if anything is known."""
        with _answering():
            found = self._redis.get(self._key("progress", job_id))
        return None if found is None else Progress.model_validate_json(found)

    def trace(self, job_id: str) -> list[TraceRow]:
        """The newest points of a running job's trace, oldest first."""
        with _answering():
            return [json.loads(point) for point in self._redis.lrange(self._key("trace", job_id), 0, -1)]

    def restart(self, job_id: str) -> None:
        """Forget the progress and trace of an earlier attempt."""
        with _answering():
            self._redis.delete(self._key("progress", job_id), self._key("trace", job_id))

    def request_cancel(self, job_id: str) -> None:
        """Ask whoever runs the job to stop; the record in the store is what counts, this makes it quick."""
        with _answering():
            self._redis.set(self._key("cancel", job_id), "1", ex=_KEPT_SECONDS)

    def cancel_requested(self, job_id: str) -> bool:
        """Whether the job was asked to stop."""
        with _answering():
            return bool(self._redis.exists(self._key("cancel", job_id)))

    def acquire(self, job_id: str, attempt: int, holder: str, seconds: float) -> bool:
        """Take the lease of an attempt that nobody holds; false if somebody does."""
        with _answering():
            return bool(self._redis.set(self._lease(job_id, attempt), holder, nx=True, px=_milliseconds(seconds)))

    def lease(self, job_id: str, attempt: int, seconds: float, holder: str = "") -> None:
        """Renew an attempt's lease, or take it again after Redis has lost it."""
        with _answering():
            self._redis.set(self._lease(job_id, attempt), holder, px=_milliseconds(seconds))

    def release(self, job_id: str, attempt: int) -> None:
        """Give an attempt's lease back before its time."""
        with _answering():
            self._redis.delete(self._lease(job_id, attempt))

    def held(self, job_id: str, attempt: int) -> bool:
        """Whether somebody lives who runs this attempt."""
        with _answering():
            return bool(self._redis.exists(self._lease(job_id, attempt)))

    def ended(self, algorithm: str, state: str, seconds: float) -> None:
        """Count a job that has ended, so many seconds after its last start."""
        key = self._key("ended")
        with _answering(), self._redis.pipeline(transaction=False) as pipe:
            pipe.hincrbyfloat(key, f"{algorithm} {state} seconds", seconds)
            for bound in ENDING_SECONDS:
                pipe.hincrby(key, f"{algorithm} {state} {bound}", int(seconds <= float(bound)))
            pipe.execute()

    def endings(self) -> dict[tuple[str, str], "Endings"]:
        """What was counted of each algorithm and state."""
        with _answering():
            found = cast("dict[bytes, bytes]", self._redis.hgetall(self._key("ended")))
        counted = {name.decode(): float(value) for name, value in found.items()}
        kinds = sorted({tuple(name.split()[:2]) for name in counted})
        return {
            (algorithm, state): Endings(
                counted.get(f"{algorithm} {state} seconds", 0.0),
                {bound: counted.get(f"{algorithm} {state} {bound}", 0.0) for bound in ENDING_SECONDS},
            )
            for algorithm, state in kinds
        }

    def worker_alive(self, name: str, seconds: float) -> None:
        """A worker's sign of life, good for so many seconds by the clock of Redis."""
        with _answering():
            now = self._now()
            workers = self._key("workers")
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.zadd(workers, {name: now + seconds})
                pipe.zremrangebyscore(workers, "-inf", now)
                pipe.execute()

    def worker_gone(self, name: str) -> None:
        """A worker says good-bye."""
        with _answering():
            self._redis.zrem(self._key("workers"), name)

    def workers(self) -> list[str]:
        """Names of the workers that have given a sign of life lately."""
        with _answering():
            names = cast("list[bytes]", self._redis.zrangebyscore(self._key("workers"), f"({self._now()}", "+inf"))
            return [name.decode() for name in names]

    def _now(self) -> float:
        seconds, microseconds = self._redis.time()
        return float(seconds) + microseconds / 1e6

    def _key(self, *parts: str) -> str:
        return ":".join((self._namespace, *parts))

    def _lease(self, job_id: str, attempt: int) -> str:
        return self._key("lease", job_id, str(attempt))


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise RedisStateUnavailable(f"Redis does not answer: {why(error)}") from error
