"""The queue of jobs, which RQ carries as messages that hold an id and nothing else, in the order of
``storage.queue.ordered_queue``.

Delivery is at-least-once: the reconciler enqueues a lost job again, and a message may come twice.
``workers.worker.attempt`` makes the result unique. The state of a job is read from the store, never from here.
"""

import secrets
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

from redis import Redis

from storage.names import age_seconds
from storage.queue.connection import redis_errors
from storage.queue.redis_state import RedisState
from storage.records import SIZES, JobSize, QueuePlace

if TYPE_CHECKING:
    from storage.queue.ordered_queue import OrderedQueue

TASK = "workers.worker.tasks.train"
_RESULT_SECONDS = 60
_MARGIN_SECONDS = 120
_PROBE_MILLISECONDS = 1000
_TURNS_SECONDS = 0.25
_ANY_PLACE = QueuePlace()


class Turns(NamedTuple):
    """The queue at one moment."""

    order: Mapping[str, int]
    """number of jobs before each job that waits, by its id"""
    sizes: Mapping[str, JobSize]
    """size of each job that waits"""
    workers: int
    """number of workers that take jobs"""
    takers: Mapping[JobSize, int]
    """number of workers that take jobs of a size"""
    starting: int
    """number of workers that do not take jobs yet"""

    def waiting_for(self, job_id: str) -> str:
        """The phase of a job until a worker takes it: the jobs or workers that it waits for."""
        ahead = self.order.get(job_id, 0)
        jobs = "1 job before it" if ahead == 1 else f"{ahead} jobs before it"
        size = self.sizes.get(job_id)
        if self.workers and size is not None and not self.takers[size]:
            return f"waiting for a worker that takes {size} jobs: none is running"
        if self.workers:
            return f"waiting for {jobs}" if ahead else "waiting for a free worker"
        worker = "waiting for a worker that is starting" if self.starting else "waiting for a worker: none is running"
        return f"{worker}, and for {jobs}" if ahead else worker


class Queue:
    """A queue in Redis, by its name. Every method raises RedisUnavailable when Redis does not answer."""

    def __init__(self, redis: Redis, name: str, job_timeout_seconds: float = 86_400.0) -> None:
        self._redis = redis
        self._name = name
        self._redis_state = RedisState(redis, name)
        self._timeout = int(job_timeout_seconds) + _MARGIN_SECONDS
        self._lock = threading.Lock()
        self._turns, self._turns_until = Turns({}, {}, 0, {}, 0), 0.0

    @cached_property
    def _queue(self) -> "OrderedQueue":
        # RQ is loaded by the first reconciliation, a second after a gateway has started, so that its readiness does not
        # wait for it
        from storage.queue.ordered_queue import OrderedQueue

        return OrderedQueue(self._name, self._redis)

    @redis_errors("the queue")
    def enqueue(self, job_id: str, place: QueuePlace = _ANY_PLACE, *, at_front: bool = False) -> None:
        """Hand a job to a worker that takes its size, when it has its turn. A job that is enqueued twice is run once: a
        worker drops a job that is over or is being run.

        ``at_front`` puts it before the jobs that wait: it had its turn and lost it. A job that kills its workers delays
        the others by no more than the deaths that it may cost.
        """
        with self._lock:
            self._queue.place = place
            self._queue.enqueue_call(
                TASK,
                args=(job_id,),
                job_id=f"{job_id}_{secrets.token_hex(4)}",
                timeout=self._timeout,
                result_ttl=_RESULT_SECONDS,
                failure_ttl=_RESULT_SECONDS,
                at_front=at_front,
            )

    def waiting(self) -> set[str]:
        """Ids of the jobs that wait in the queue."""
        return {id for id, _ in self._order()}

    def turns(self, job_id: str) -> Turns:
        """The order of the jobs that wait, and the workers.

        What it returned a moment ago is returned again, if that has the job.
        """
        if time.monotonic() >= self._turns_until or job_id not in self._turns.order:
            waiting = self._order()
            order = {id: place for place, (id, _) in reversed(list(enumerate(waiting)))}
            state = self._redis_state
            takers = {size: len(state.workers(size)) for size in SIZES}
            self._turns = Turns(order, dict(waiting), len(state.workers()), takers, len(state.starting_workers()))
            self._turns_until = time.monotonic() + _TURNS_SECONDS
        return self._turns

    @redis_errors("the queue")
    def _order(self) -> list[tuple[str, JobSize]]:
        """Ids and sizes of the jobs that wait, in their order."""
        with self._redis.pipeline(transaction=False) as pipe:
            for size in SIZES:
                pipe.zrange(self._queue.waiting_key(size), 0, -1, withscores=True)
            found = cast("list[list[tuple[bytes, float]]]", pipe.execute())
        tagged = sorted(
            (tag, message, size) for size, entries in zip(SIZES, found, strict=True) for message, tag in entries
        )
        return [(message.decode().rpartition("_")[0], size) for _, message, size in tagged]

    def depth(self) -> int:
        """Number of jobs that wait for a worker."""
        return sum(self.depths().values())

    @redis_errors("the queue")
    def depths(self) -> dict[JobSize, int]:
        """Number of jobs that wait for a worker, by size."""
        return {size: int(self._redis.zcard(self._queue.waiting_key(size))) for size in SIZES}

    def age(self) -> float:
        """Seconds since the oldest of the waiting jobs was requested; 0 if none waits."""
        return max((age_seconds(id) for id in self.waiting()), default=0.0)

    @redis_errors("the queue")
    def ping(self) -> None:
        """Raise RedisUnavailable unless Redis can be written; a full or read-only one answers reads."""
        self._redis.set(f"{self._name}:probe", b"", px=_PROBE_MILLISECONDS)
