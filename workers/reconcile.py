"""Repairs what a crash or a lost Redis has left: jobs that nobody runs, successes that were not published."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import structlog

from workers.contract import Job, JobState, Outcome
from workers.jobs import Jobs
from workers.live import Live
from workers.problems import WORKER_DIED, problem
from workers.queue import Queue

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_TIDY_SECONDS = 600.0


class Repairs(NamedTuple):
    """Ids of the jobs that one round has helped on."""

    enqueued: list[str]
    published: list[str]
    ended: list[str]
    """cancelled or failed, because no worker can be expected to do so"""


class Reconciler:
    """Looks at all unfinished jobs again and again; any number may run, in any processes.

    A job counts as abandoned when it has been seen without a lease and outside the queue for longer than a lease lasts, Redis answering all the
    while: after Redis was emptied, a running attempt has its lease back by then. ``tidy`` is called in the first round, then every ten minutes.
    """

    def __init__(
        self,
        jobs: Jobs,
        live: Live,
        queue: Queue,
        *,
        lease_seconds: float,
        max_attempts: int = 3,
        tidy: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = jobs
        self._live = live
        self._queue = queue
        self._lease_seconds = lease_seconds
        self._max_attempts = max_attempts
        self._tidy = tidy
        self._tidied = -math.inf
        self._clock = clock
        self._missing: dict[str, tuple[int, float]] = {}

    def round(self) -> Repairs:
        """Look at every unfinished job once. Raises QueueUnavailable, LiveUnavailable or StoreUnavailable; then nothing was wrongly done."""
        if self._clock() - self._tidied > _TIDY_SECONDS:
            self._tidied = self._clock()
            self._tidy()
        repairs = Repairs([], [], [])
        missing: dict[str, tuple[int, float]] = {}
        before, self._missing = self._missing, {}
        waiting = self._queue.waiting()
        for job in self._jobs.unfinished(but=waiting):
            id = job.request.id
            if job.attempt and self._live.held(id, job.attempt):
                continue
            if job.outcome is not None:
                self._jobs.publish(id)
                repairs.published.append(id)
                continue
            attempt, since = before.get(id, (job.attempt, self._clock()))
            if attempt != job.attempt:
                since = self._clock()
            if self._clock() - since <= self._lease_seconds:
                missing[id] = (job.attempt, since)
            elif id not in self._queue.waiting():
                (repairs.enqueued if self.recover(job) else repairs.ended).append(id)
        self._missing = missing
        if any(repairs):
            _log.warning("jobs repaired", **repairs._asdict())
        return repairs

    def recover(self, job: Job) -> bool:
        """Give an abandoned job another chance, and true; or end it: as cancelled if that was asked for, as failed after too many deaths."""
        id = job.request.id
        if self._jobs.cancel_requested(id):
            self._end(job, Outcome(state=JobState.CANCELLED, attempt=job.attempt, finished_at=datetime.now(UTC)))
            return False
        deaths = self._jobs.deaths(id)
        if deaths >= self._max_attempts:
            detail = f"{deaths} attempts ended without a result: each time the worker died, was killed for want of memory or lost its store"
            error = problem(WORKER_DIED, detail)
            self._end(job, Outcome(state=JobState.FAILED, attempt=job.attempt, finished_at=datetime.now(UTC), error=error))
            return False
        self._queue.enqueue(id)
        return True

    def _end(self, job: Job, outcome: Outcome) -> None:
        self._jobs.finish(job.request.id, outcome)
        if self._jobs.publish(job.request.id) is None:
            self._jobs.close(job.request.id)
