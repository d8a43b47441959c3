"""State of running jobs and workers in Redis, which may be lost, and the connection to it: progress, the trace so far,
leases, cancel flags, heartbeats of workers, and claims of documents by people who are about to label them.

Everything but the counts of outcomes is forgotten after its time. When Redis does not answer, every method raises
RedisUnavailable.

Leases say which attempts at jobs are being run now, by whom. A lease is a key in Redis with a time to live, and a value
that each renewal changes.

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

import json
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ConnectionError, RedisError
from redis.retry import Retry

from storage.errors import RedisUnavailable
from storage.recent import Recent
from storage.records import SIZES, JobSize, Progress


def connect(url: str, seconds: float) -> Redis:
    """A client that gives up after ``seconds`` instead of hanging; it reconnects by itself when Redis is back."""
    # a connection that was closed is made anew at once; silence is not waited for again, which connecting and asking
    # would do twice each
    retry = Retry(NoBackoff(), 1, (ConnectionError,))
    return Redis.from_url(
        url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=retry, health_check_interval=15
    )


def redis_error_text(error: Exception) -> str:
    """The text of an error of Redis. Of a password that is missing or wrong Redis itself speaks in words of its
    protocol.
    """
    if isinstance(error, AuthenticationError):
        return f"it wants another user or password than HALFMOON_REDIS_URL has, redis://user:password@host ({error})"
    return str(error)


@contextmanager
def redis_errors(what: str = "Redis") -> Iterator[None]:
    """Raise RedisUnavailable for any failure of Redis inside the block, or the function that this decorates: "{what}
    does not answer: …".
    """
    try:
        yield
    except (RedisError, OSError) as error:
        raise RedisUnavailable(f"{what} does not answer: {redis_error_text(error)}") from error


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


_CLAIM = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now + ARGV[2], '+inf')
local taken = {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    local position, person = string.match(member, '^(%d+):(.*)$')
    if person ~= ARGV[1] then taken[position] = true end
end
local lost = {}
for k = 3, #ARGV do
    if taken[ARGV[k]] then
        lost[#lost + 1] = ARGV[k]
    else
        redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[k] .. ':' .. ARGV[1])
    end
end
if redis.call('TTL', KEYS[1]) < 2 * ARGV[2] then redis.call('EXPIRE', KEYS[1], 2 * ARGV[2]) end
return lost
"""
"""A script of Redis, so that of several people who claim a document at the same time one gets it."""


class DocumentClaims:
    """Claims of documents in Redis: of each dataset a sorted set of ``position:person``, by the time at which the claim
    ends.
    """

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace

    @redis_errors()
    def of_others(self, dataset: str, person: str) -> set[int]:
        """Positions of the documents of a dataset that others have claimed; raises RedisUnavailable."""
        now, _ = self._redis.time()
        members = cast("list[bytes]", self._redis.zrangebyscore(self._key(dataset), f"({now}", "+inf"))
        claimed = (member.decode().partition(":") for member in members)
        return {int(position) for position, _, other in claimed if other != person}

    @redis_errors()
    def claim(self, dataset: str, positions: Collection[int], person: str, seconds: int) -> set[int]:
        """Claim documents for so many seconds, by the clock of Redis; positions of those that others have.

        Raises RedisUnavailable.
        """
        if not positions:
            return set()
        lost = cast("list[bytes]", self._redis.eval(_CLAIM, 1, self._key(dataset), person, seconds, *positions))
        return set(map(int, lost))

    def _key(self, dataset: str) -> str:
        return f"{self._namespace}:claims:{dataset}"
