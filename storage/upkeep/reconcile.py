"""Reconciliation of the unfinished jobs with the queue and the leases, after a crash or the loss of Redis.

A round looks at every unfinished job that does not wait in the queue. The first rule that fits decides:

1. The job is over: it is taken off the list of the unfinished. So is, after a day, one whose request was never stored.
2. Its newest attempt holds a lease: nothing is done, a worker runs it.
3. It has an outcome that was not published: the outcome is published.
4. It has been seen without a lease and outside the queue for no longer than a lease lasts: nothing is done yet.
   After Redis was emptied, a running attempt has taken its lease again by then. For a job whose attempts are used up
   (rule 6) it is five times as long: an outcome cannot be undone.
5. A cancel was requested: the job is cancelled.
6. Its workers have died ``max_attempts`` times: the job fails.
7. Otherwise it is enqueued again, the oldest first: before the jobs that wait if it had its turn already, else as if
   it had come now.

A job whose records are damaged is passed over: it delays no other.
Any number of reconcilers may run, in any processes. What two of them enqueue twice is run once.
"""

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import structlog

from storage.errors import NotFound, RedisUnavailable, StoreDamaged, Unavailable
from storage.names import new_id
from storage.problems import WORKER_DIED, problem
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.records import Failure, Job, JobState, Outcome, QueuePlace
from storage.repositories.job_attempts import Death
from storage.repositories.jobs import Jobs
from storage.repositories.sightings import Sightings

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_GRACE_BEFORE_FAILURE = 5
"""Factor of the time that a job is given without a lease where it fails after it."""


class Repairs(NamedTuple):
    """Ids of the jobs that one round has repaired, by kind of repair."""

    enqueued: list[str]
    published: list[str]
    ended: list[str]
    """cancelled or failed in the place of a worker"""


class Reconciler:
    """Applies the rules above; remembers between rounds since when a job has been without a lease."""

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
        self._sightings = Sightings()
        self._missing: dict[str, tuple[int, float]] = {}
        self._failed: set[str] = set()
        """ids of jobs that could not be repaired, which are logged once"""

    def reconcile(self) -> Repairs:
        """One round.

        Raises RedisUnavailable or StoreUnavailable; what was done until then is right.
        """
        repairs = Repairs([], [], [])
        before, self._missing = self._missing, {}
        missing: dict[str, tuple[int, float]] = {}
        for id, job in self._jobs.open_jobs(but=self._queue.waiting()):
            try:
                since = self._repair(id, job, before.get(id), repairs)
            except (StoreDamaged, NotFound):  # the one was logged, the other has ended and was deleted; the rest go on
                continue
            except Unavailable:
                raise
            except Exception:
                if id not in self._failed:
                    _log.exception("a job cannot be repaired; the others go on", job=id)
                    self._failed.add(id)
                continue
            if since is not None:
                missing[id] = since
        self._missing = missing
        if any(repairs):
            _log.warning("jobs repaired", **repairs._asdict())
        return repairs

    def _repair(
        self, id: str, job: Job | None, before: tuple[int, float] | None, repairs: Repairs
    ) -> tuple[int, float] | None:
        """Apply the first rule that fits; by rule 4 it returns which attempt has been without a lease, and since
        when."""
        if job is None or job.state.final:  # rule 1
            # a job without a request was never accepted: its maker died before it stored the request
            if job is not None or self._sightings.old(id, self._abandoned_seconds):
                self._jobs.close(id)
        elif job.attempt and self._redis_state.leases.held(id, job.attempt, self._lease_seconds):  # rule 2
            pass
        elif job.outcome is not None:  # rule 3
            self._jobs.publish(id)
            self._redis_state.note_change(id)
            repairs.published.append(id)
        else:
            since = before[1] if before is not None and before[0] == job.attempt else self._clock()
            used_up = self._jobs.deaths(id, job.attempt) >= self._max_attempts
            if self._clock() - since <= self._lease_seconds * (_GRACE_BEFORE_FAILURE if used_up else 1):  # rule 4
                return job.attempt, since
            # rules 5 to 7; a lease that changes no more would keep the next worker from the job, also that of an
            # attempt which was never claimed
            self._redis_state.leases.revoke(id, job.attempt, job.attempt + 1)
            (repairs.enqueued if self._retry_or_end(job) else repairs.ended).append(id)
        return None

    def retry_now(self, id: str, attempt: int) -> None:
        """Apply rules 5 to 7 to the job of an attempt that is known to be dead, instead of waiting until its lease has
        run out.
        """
        self._redis_state.leases.revoke(id, attempt)
        if not self._jobs.has_outcome(id):
            self._retry_or_end(self._jobs.get(id))

    def _retry_or_end(self, job: Job) -> bool:
        """Rules 5 to 7; whether the job was enqueued."""
        id = job.request.id
        if self._jobs.cancel_requested(id):  # rule 5
            self._end(job, JobState.CANCELLED)
            return False
        deaths = self._jobs.deaths(id, job.attempt)  # an attempt that began after the look for leases is alive
        if deaths >= self._max_attempts:  # rule 6
            detail = (
                f"{deaths} attempts ended without a result: each time the worker died, was killed for want of "
                "memory or lost its store"
            )
            self._end(
                job, JobState.FAILED, problem(WORKER_DIED, f"{detail}{death_detail(self._jobs.death(id, job.attempt))}")
            )
            return False
        self._queue.enqueue(id, QueuePlace(job.request.size, job.request.caller), at_front=job.attempt > 0)  # rule 7
        return True

    def _end(self, job: Job, state: JobState, error: Failure | None = None) -> None:
        """Record an outcome in the place of a worker, with the progress and the trace of the last attempt that Redis
        still knows.
        """
        id, files = job.request.id, {}
        progress, points = None, []
        with suppress(RedisUnavailable):
            progress, points = self._redis_state.progress(id), self._redis_state.trace(id)
        if points:
            files["trace"] = self._jobs.store_trace(f"jobs/{id}/attempts/{new_id('trace')}/trace.json", points)
        outcome = Outcome(
            state=state,
            attempt=job.attempt,
            finished_at=datetime.now(UTC),
            error=error,
            progress=progress,
            files=files,
        )
        self._jobs.end(job.request, outcome, job.started_at, self._redis_state)


def death_detail(death: Death | None) -> str:
    """How the last attempt died, as the end of a sentence for the owner of the job; empty if its worker did not see
    it."""
    if death is None:
        return ""
    if death.signal is None:
        return "; the last ended by itself, see the worker's log"
    how = (
        "; the last was killed by "
        + signal.Signals(death.signal).name
        + f" when it had taken {death.peak_bytes / 2**20:.0f} MiB of memory"
    )
    return how + (", as the system does where memory runs out" if death.signal == signal.SIGKILL else "")
