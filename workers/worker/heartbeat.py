"""The heartbeat of a running attempt: a thread that renews its lease, publishes its progress and listens for a cancel.

lease      renewed in Redis four times within the time that it lasts
progress   published in Redis when the trace has new points, else every 0.2 s
cancel     read in Redis every 0.1 s
worker     looked for every 0.1 s: when it has died this process ends, and another worker gets the job

It depends on Redis alone: a store that hangs makes no healthy attempt lose its lease. What the store says is read by
the watch (``workers.worker.store_watch``).
"""

import math
import os
import threading
import time
from collections import deque
from enum import StrEnum
from typing import Any

import structlog

from core.errors import HalfmoonError
from core.phases import phase_in_words
from core.progress import TracePoint
from storage.errors import RedisUnavailable
from storage.process.background import BackgroundThread
from storage.queue.redis_state import TRACE_POINTS, TraceRow
from storage.records import Progress
from workers.worker.context import WorkerContext

_INTERVAL_SECONDS = 0.1
_PROGRESS_SECONDS = 0.2
_MAX_UNPUBLISHED_POINTS = 2_000
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StopReason(StrEnum):
    """Why a running attempt was asked to stop."""

    CANCELLED = "cancelled"
    HANDED_BACK = "handed_back"
    TIMED_OUT = "timed_out"
    SUPERSEDED = "superseded"


WITHOUT_OUTCOME = (StopReason.HANDED_BACK, StopReason.SUPERSEDED)
"""Reasons that end an attempt without an outcome: another worker gets the job, or has it."""


class Heartbeat(BackgroundThread):
    """Context manager around the training of one attempt; ``observe`` is the observer of the training.

    The solver never waits for Redis: it leaves points here and reads a flag, and a thread does the rest. While Redis
    does not answer, progress is not published.
    """

    def __init__(self, context: WorkerContext, job_id: str, attempt: int) -> None:
        super().__init__(f"heartbeat of {job_id}")
        self.reason: StopReason | None = None
        self.without_redis = False
        """whether Redis did not answer when it was last needed"""
        self._context = context
        self._job_id = job_id
        self._attempt = attempt
        self._deadline = time.monotonic() + context.settings.job_timeout_seconds
        self._latest: TracePoint | None = None
        self._phase = ""
        self._points: list[TraceRow] = []
        self._trace: deque[TraceRow] = deque(maxlen=TRACE_POINTS)
        self._guard = threading.Lock()
        self._due = dict.fromkeys(("lease", "progress"), 0.0)
        self._failed = False

    def observe(self, point: TracePoint, /) -> bool:
        """Note the point that the solver has reached; true asks it to stop."""
        with self._guard:
            before = self._latest
            self._latest = point
            if before is None or (before.phase, before.iteration) != (point.phase, point.iteration):
                row = trace_row(point)
                self._trace.append(row)
                self._points = [*self._points[-_MAX_UNPUBLISHED_POINTS:], row]
        return self._asked_to_stop()

    def wait_for(self, phase: str) -> bool:
        """Note the reason why an attempt waits before its solver begins, in words; true asks it to stop."""
        self._phase = phase
        return self._asked_to_stop()

    def _asked_to_stop(self) -> bool:
        if self.reason is None and time.monotonic() > self._deadline:
            self.stop(StopReason.TIMED_OUT)
        return self.reason is not None

    @property
    def progress(self) -> Progress | None:
        """Progress at the last point that the solver reported; None before the first."""
        with self._guard:
            return None if self._latest is None else progress_of(self._latest)

    @property
    def trace(self) -> list[TraceRow]:
        """The newest points of the solver's trace, oldest first."""
        with self._guard:
            return list(self._trace)

    def stop(self, reason: StopReason) -> None:
        """Ask the solver to stop; the first reason counts."""
        if self.reason is None:
            self.reason = reason

    def _run(self) -> None:
        while not self._done.wait(_INTERVAL_SECONDS):
            # known before the fork: a process whose parent has died already would here get the one that has taken over
            if self._context.worker_pid not in (os.getpid(), os.getppid()):
                self._exit_as_orphan()
            try:
                now = time.monotonic()
                if now >= self._due["lease"]:
                    seconds = self._context.settings.lease_seconds
                    self._context.redis_state.leases.renew(self._job_id, self._attempt, self._context.worker, seconds)
                    self._due["lease"] = now + seconds / 4
                self._publish_progress(now)
                if self.reason is None and self._context.redis_state.cancel_requested(self._job_id):
                    self.stop(StopReason.CANCELLED)
                self.without_redis = False
            except RedisUnavailable:
                self.without_redis = True
            except Exception:  # whatever it is, the lease must go on
                if not self._failed:
                    _log.exception("the heartbeat of a job fails", job=self._job_id)
                self._failed = True

    def _publish_progress(self, now: float) -> None:
        with self._guard:
            latest, points, self._points = self._latest, self._points, []
        progress = Progress(phase=self._phase) if latest is None else progress_of(latest)
        if not progress.phase or (not points and now < self._due["progress"]):
            return
        try:
            self._context.redis_state.publish_progress(self._job_id, progress, points)
        except RedisUnavailable:
            with self._guard:
                self._points = (points + self._points)[-_MAX_UNPUBLISHED_POINTS:]
            raise
        self._due["progress"] = now + _PROGRESS_SECONDS

    def _exit_as_orphan(self) -> None:
        """End this process after the death of its worker, so that no stray process computes; another worker gets the
        job.
        """
        _log.error("the worker has died; another gets the job", job=self._job_id, attempt=self._attempt)
        try:
            self._context.reconciler().retry_now(self._job_id, self._attempt)
        except HalfmoonError as error:
            _log.warning(
                "a gateway enqueues the job again when its lease has run out",
                job=self._job_id,
                attempt=self._attempt,
                error=str(error),
            )
        os._exit(1)


def progress_of(point: TracePoint) -> Progress:
    """The progress of a job at a point of its solver."""
    return Progress(
        fraction=min(max(_finite(point.fraction) or 0.0, 0.0), 1.0),
        phase=phase_in_words(point),
        iteration=point.iteration,
        objective=_finite(point.objective),
    )


def trace_row(point: TracePoint) -> TraceRow:
    """A point of a trace as JSON; NaN and infinity, which JSON has not, become null."""
    row: dict[str, Any] = point._asdict() | {"phase": str(point.phase)}
    return {
        name: _finite(value) if isinstance(value, float) else value for name, value in row.items() if name != "stages"
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
