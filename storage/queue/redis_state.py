"""State of running jobs and workers in Redis, which may be lost: progress, the trace so far, leases, cancel flags,
heartbeats of workers, and claims of documents.

Everything but the counts of outcomes is forgotten after its time. When Redis does not answer, every method raises
RedisUnavailable.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

from redis import Redis

from storage.queue.claims import DocumentClaims
from storage.queue.connection import redis_errors
from storage.queue.leases import Leases
from storage.records import SIZES, JobSize, Progress

_TTL_SECONDS = 3600
TRACE_POINTS = 10_000
"""Number of points of a running job's trace that Redis holds, the newest."""

TraceRow = dict[str, Any]
"""A point of a trace as JSON: ``phase``, ``iteration``, ``stage_objective``, ``objective``, ``fraction``,
``seconds``."""

TIME_BOUNDS = ("1", "5", "15", "60", "300", "900", "3600", "14400", "+Inf")
"""Bounds of the histogram of the times of jobs, in seconds, as Prometheus writes them."""


class OutcomeTimes(NamedTuple):
    """Times of the jobs of one algorithm that ended in one state."""

    seconds: float
    """sum over the jobs"""
    within: dict[str, float]
    """number of jobs that took no longer than each bound"""


class RedisState:
    """State of running jobs and workers in Redis; ``namespace`` separates installations that share a Redis."""

    def __init__(self, redis: Redis, namespace: str = "halfmoon") -> None:
        self._redis = redis
        self._namespace = namespace
        self.leases = Leases(redis, namespace)
        self.claims = DocumentClaims(redis, namespace)

    @redis_errors()
    def publish_progress(self, job_id: str, progress: Progress, points: Sequence[TraceRow] = ()) -> None:
        """Replace the progress of a job, and append the points that its trace has gained."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.set(self._key("progress", job_id), progress.model_dump_json(), ex=_TTL_SECONDS)
            if points:
                trace = self._key("trace", job_id)
                pipe.rpush(trace, *(json.dumps(point) for point in points))
                pipe.ltrim(trace, -TRACE_POINTS, -1)
                pipe.expire(trace, _TTL_SECONDS)
            pipe.execute()

    @redis_errors()
    def progress(self, job_id: str) -> Progress | None:
        """The progress of a job, None if nothing is known."""
        found = self._redis.get(self._key("progress", job_id))
        return None if found is None else Progress.model_validate_json(found)

    @redis_errors()
    def trace(self, job_id: str) -> list[TraceRow]:
        """The newest points of a running job's trace, oldest first."""
        return [json.loads(point) for point in self._redis.lrange(self._key("trace", job_id), 0, -1)]

    @redis_errors()
    def clear_progress(self, job_id: str) -> None:
        """Forget the progress and trace of an earlier attempt."""
        self._redis.delete(self._key("progress", job_id), self._key("trace", job_id))

    @redis_errors()
    def request_cancel(self, job_id: str) -> None:
        """Set the cancel flag of a job. The record in the store decides; the flag makes it quick."""
        self._redis.set(self._key("cancel", job_id), "1", ex=_TTL_SECONDS)

    @redis_errors()
    def cancel_requested(self, job_id: str) -> bool:
        """Whether the cancel flag of the job is set."""
        return bool(self._redis.exists(self._key("cancel", job_id)))

    @redis_errors()
    def note_change(self, job_id: str) -> None:
        """Note that a record of a job was created, so that who follows the job reads the store at once."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.incr(self._key("changes", job_id))
            pipe.expire(self._key("changes", job_id), _TTL_SECONDS)
            pipe.execute()

    @redis_errors()
    def changes(self, job_id: str) -> int:
        """Number of changes that were noted lately."""
        return int(cast("bytes | None", self._redis.get(self._key("changes", job_id))) or 0)

    @redis_errors()
    def count_outcome(self, algorithm: str, state: str, seconds: float) -> None:
        """Count a job that has ended, so many seconds after its last start."""
        key = self._key("ended")
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hincrbyfloat(key, f"{algorithm} {state} seconds", seconds)
            for bound in TIME_BOUNDS:
                pipe.hincrby(key, f"{algorithm} {state} {bound}", int(seconds <= float(bound)))
            pipe.execute()

    @redis_errors()
    def outcome_times(self) -> dict[tuple[str, str], OutcomeTimes]:
        """The counts of outcomes, by algorithm and state."""
        found = cast("dict[bytes, bytes]", self._redis.hgetall(self._key("ended")))
        counted = {name.decode(): float(value) for name, value in found.items()}
        kinds = sorted({tuple(name.split()[:2]) for name in counted})
        return {
            (algorithm, state): OutcomeTimes(
                counted.get(f"{algorithm} {state} seconds", 0.0),
                {bound: counted.get(f"{algorithm} {state} {bound}", 0.0) for bound in TIME_BOUNDS},
            )
            for algorithm, state in kinds
        }

    @redis_errors()
    def record_heartbeat(
        self, worker: str, seconds: float, *, starting: bool = False, sizes: Collection[JobSize] = SIZES
    ) -> None:
        """Count a worker that takes jobs of some sizes as alive for so many seconds, by the clock of Redis.

        It counts as ``starting`` while it takes no jobs yet.
        """
        now = self._now()
        with self._redis.pipeline(transaction=False) as pipe:
            for kind in ["starting"] if starting else ["workers", *(f"workers:{size}" for size in sizes)]:
                pipe.zadd(self._key(kind), {worker: now + seconds})
                pipe.zremrangebyscore(self._key(kind), "-inf", now)
            pipe.execute()

    @redis_errors()
    def remove_worker(self, worker: str) -> None:
        """Count a worker as alive no more."""
        with self._redis.pipeline(transaction=False) as pipe:
            for kind in ("workers", "starting", *(f"workers:{size}" for size in SIZES)):
                pipe.zrem(self._key(kind), worker)
            pipe.execute()

    def workers(self, size: JobSize | None = None) -> list[str]:
        """Names of the workers that take jobs, or take jobs of a size: their last heartbeat still counts."""
        return self._alive("workers" if size is None else f"workers:{size}")

    def starting_workers(self) -> list[str]:
        """Names of the workers that are alive, but load or compile the kernels."""
        return self._alive("starting")

    @redis_errors()
    def _alive(self, kind: str) -> list[str]:
        names = cast("list[bytes]", self._redis.zrangebyscore(self._key(kind), f"({self._now()}", "+inf"))
        return [name.decode() for name in names]

    def _now(self) -> float:
        seconds, microseconds = self._redis.time()
        return float(seconds) + microseconds / 1e6

    def _key(self, *parts: str) -> str:
        return ":".join((self._namespace, *parts))
