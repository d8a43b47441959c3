"""Repairs what a crash or a lost Redis has left: jobs that nobody runs, successes that were not published."""

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import structlog

from workers.contract import Death, Job, JobState, Outcome, Problem
from workers.errors import RedisStateUnavailable
from workers.names import born_before, new_id
from workers.problems import WORKER_DIED, problem
from workers.queue.queue import Queue
from workers.queue.redis_state import RedisState
from workers.repositories.jobs import Jobs

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_PATIENCE = 5
"""How many times longer than else a job is given before it fails for a lost lease, since an outcome cannot be taken back."""


class Repairs(NamedTuple):
    """Ids of the jobs that one round has helped on."""

    enqueued: list[str]
    published: list[str]
    ended: list[str]
    """cancelled or failed, because no worker can be expected to do so"""


class Reconciler:
    """Looks at all unfinished jobs again and again; any number may run, in any processes.

    A job counts as abandoned when it has been seen without a lease and outside the queue for longer than a lease lasts, Redis answering all the
    while: after Redis was emptied, a running attempt has its lease back by then.
    """

    def __init__(
        self,
        jobs: Jobs,
        redis_state: RedisState,
        queue: Queue,
        *,
        lease_seconds: float,
        max_attempts: int = 3,
        abandoned_seconds: float = 86_400.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = jobs
        self._redis_state = redis_state
        self._queue = queue
        self._lease_seconds = lease_seconds
        self._max_attempts = max_attempts
        self._abandoned_seconds = abandoned_seconds
        self._clock = clock
        self._missing: dict[str, tuple[int, float]] = {}

    def round(self) -> Repairs:
        """Look at every unfinished job once. Raises QueueUnavailable, LiveUnavailable or StoreUnavailable; then nothing was wrongly done."""
        repairs = Repairs([], [], [])
        before, self._missing = self._missing, {}
        missing: dict[str, tuple[int, float]] = {}
        # the newest first: what was lost goes before what waits, and of several the oldest ends up in front
        for id, job in reversed(list(self._jobs.opened(but=self._queue.waiting()))):
            if job is None or job.state.final:
                self._close(id, job)
            elif job.attempt and self._redis_state.leases.held(id, job.attempt):
                continue
            elif job.outcome is not None:
                self._jobs.publish(id)
                repairs.published.append(id)
            else:
                attempt, since = before.get(id, (job.attempt, self._clock()))
                if attempt != job.attempt:
                    since = self._clock()
                if self._clock() - since <= self._lease_seconds * (_PATIENCE if self._hopeless(id) else 1):
                    missing[id] = (job.attempt, since)
                else:
                    (repairs.enqueued if self.recover(job) else repairs.ended).append(id)
        self._missing = missing
        for ids in repairs:
            ids.reverse()
        if any(repairs):
            _log.warning("jobs repaired", **repairs._asdict())
        return repairs

    def next_chance(self, id: str, attempt: int) -> None:
        """Of an attempt that is known to be dead: help its job on at once instead of when the lease has run out."""
        self._redis_state.leases.release(id, attempt)
        if not self._jobs.over(id):
            self.recover(self._jobs.get(id))

    def recover(self, job: Job) -> bool:
        """Give an abandoned job another chance, and true; or end it: as cancelled if that was asked for, as failed after too many deaths."""
        id = job.request.id
        if self._jobs.cancel_requested(id):
            self._end(job, JobState.CANCELLED)
            return False
        if self._hopeless(id):
            deaths = self._jobs.deaths(id)
            detail = f"{deaths} attempts ended without a result: each time the worker died, was killed for want of memory or lost its store"
            self._end(job, JobState.FAILED, problem(WORKER_DIED, f"{detail}{told(self._jobs.death(id, job.attempt))}"))
            return False
        self._queue.enqueue(id, first=True)
        return True

    def _hopeless(self, id: str) -> bool:
        return self._jobs.deaths(id) >= self._max_attempts

    def _close(self, id: str, job: Job | None) -> None:
        """Take a job off the list of the unfinished that is over, or whose maker died before it stored the request, so that it was never accepted."""
        if job is not None or born_before(id, self._abandoned_seconds):
            self._jobs.close(id)

    def _end(self, job: Job, state: JobState, error: Problem | None = None) -> None:
        """Record an outcome in the place of the worker, with what Redis still knows of the last attempt."""
        id, files = job.request.id, {}
        progress, points = None, []
        with suppress(RedisStateUnavailable):
            progress, points = self._redis_state.progress(id), self._redis_state.trace(id)
        if points:
            files["trace"] = self._jobs.store_trace(f"jobs/{id}/attempts/{new_id('trace')}/trace.json", points)
        outcome = Outcome.model_validate(
            {"state": state, "attempt": job.attempt, "finished_at": datetime.now(UTC), "error": error, "progress": progress, "files": files}
        )
        if self._jobs.finish(id, outcome):
            seconds = (outcome.finished_at - job.started_at).total_seconds() if job.started_at else 0.0
            with suppress(RedisStateUnavailable):
                self._redis_state.count_outcome(job.request.algorithm, state.value, seconds)
        if self._jobs.publish(id) is None:
            self._jobs.close(id)


def told(death: Death | None) -> str:
    """What the owner of a job is told of how its last attempt died."""
    if death is None:
        return ""
    if death.signal is None:
        return "; the last ended by itself, see the worker's log"
    how = "; the last was killed by " + signal.Signals(death.signal).name + f" when it had taken {death.peak_bytes / 2**20:.0f} MiB of memory"
    return how + (", as the system does where memory runs out" if death.signal == signal.SIGKILL else "")
