"""What beats beside a running attempt: renews its lease, tells its progress, listens for reasons to stop."""

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

import structlog

from core.errors import HalfmoonError
from core.progress import TracePoint
from workers.contract import Progress
from workers.errors import RedisStateUnavailable
from workers.queue.redis_state import TRACE_POINTS, RedisState, TraceRow
from workers.repositories.jobs import Jobs

_BEAT_SECONDS = 0.1
_REPEAT_SECONDS = 0.4
_STORE_SECONDS = 1.0
_STORE_SECONDS_ALONE = 0.2
_MOST_POINTS = 2_000
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Reason(StrEnum):
    """Why a running attempt was asked to stop."""

    CANCELLED = "cancelled"
    HANDED_BACK = "handed_back"
    TIMED_OUT = "timed_out"
    SUPERSEDED = "superseded"


LEAVING = (Reason.HANDED_BACK, Reason.SUPERSEDED)
"""Reasons for which the job goes to another worker, or has gone."""


class Heart:
    """A context manager around the training of one attempt; ``observe`` is its observer.

    The solver never waits for Redis or the store: it leaves points here and reads a flag, a thread does the rest. With Redis away, progress is
    not told and cancels are read from the store.
    """

    def __init__(
        self,
        jobs: Jobs,
        redis_state: RedisState,
        job_id: str,
        attempt: int,
        holder: str,
        *,
        lease_seconds: float,
        job_seconds: float,
        guardian: int,
        orphaned: Callable[[], None],
    ) -> None:
        self.reason: Reason | None = None
        self._jobs = jobs
        self._redis_state = redis_state
        self._job_id = job_id
        self._attempt = attempt
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._deadline = time.monotonic() + job_seconds
        self._guardian = guardian
        self._orphaned = orphaned
        self._latest: TracePoint | None = None
        self._points: list[TraceRow] = []
        self._trace: deque[TraceRow] = deque(maxlen=TRACE_POINTS)
        self._guard = threading.Lock()
        self._done = threading.Event()
        self._due = dict.fromkeys(("lease", "progress", "store"), 0.0)
        self._alone = False
        self._thread = threading.Thread(target=self._beat, name=f"heart of {job_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def observe(self, point: TracePoint, /) -> bool:
        """Take note of where the solver is; true asks it to stop."""
        with self._guard:
            before = self._latest
            self._latest = point
            if before is None or (before.phase, before.iteration) != (point.phase, point.iteration):
                row = trace_row(point)
                self._trace.append(row)
                self._points = [*self._points[-_MOST_POINTS:], row]
        if self.reason is None and time.monotonic() > self._deadline:
            self.stop(Reason.TIMED_OUT)
        return self.reason is not None

    @property
    def progress(self) -> Progress | None:
        """Where the solver was when it last told."""
        with self._guard:
            return None if self._latest is None else progress_of(self._latest)

    @property
    def trace(self) -> list[TraceRow]:
        """The newest points of the solver's trace, oldest first."""
        with self._guard:
            return list(self._trace)

    def stop(self, reason: Reason) -> None:
        """Ask the solver to stop; the first reason counts."""
        if self.reason is None:
            self.reason = reason

    def _beat(self) -> None:
        while not self._done.wait(_BEAT_SECONDS):
            now = time.monotonic()
            # told before the fork: who asks for the parent only here may be told of the one that has taken over
            if self._guardian not in (os.getpid(), os.getppid()):
                self._abandon()
            try:
                self._renew(now)
                self._tell(now)
                self._listen()
                self._alone = False
            except RedisStateUnavailable:
                self._alone = True
            try:
                self._consult(now)
            except HalfmoonError as error:
                _log.warning("the store does not answer a running job", job=self._job_id, error=str(error))

    def _renew(self, now: float) -> None:
        if now >= self._due["lease"]:
            self._redis_state.leases.renew(self._job_id, self._attempt, self._holder, self._lease_seconds)
            self._due["lease"] = now + self._lease_seconds / 4

    def _tell(self, now: float) -> None:
        with self._guard:
            latest, points, self._points = self._latest, self._points, []
        if latest is None or (not points and now < self._due["progress"]):
            return
        try:
            self._redis_state.publish_progress(self._job_id, progress_of(latest), points)
        except RedisStateUnavailable:
            with self._guard:
                self._points = (points + self._points)[-_MOST_POINTS:]
            raise
        self._due["progress"] = now + _REPEAT_SECONDS

    def _listen(self) -> None:
        if self.reason is None and self._redis_state.cancel_requested(self._job_id):
            self.stop(Reason.CANCELLED)

    def _consult(self, now: float) -> None:
        """Ask the store, which knows for certain, more often when it is the only one that answers."""
        if self.reason is not None or now < self._due["store"]:
            return
        self._due["store"] = now + (_STORE_SECONDS_ALONE if self._alone else _STORE_SECONDS)
        if self._jobs.over(self._job_id) or self._jobs.last_attempt(self._job_id) != self._attempt:
            self.stop(Reason.SUPERSEDED)
        elif self._jobs.cancel_requested(self._job_id):
            self.stop(Reason.CANCELLED)

    def _abandon(self) -> None:
        """The worker that watched over this process is gone: so that no stray process computes, leave the job to another worker."""
        _log.error("the worker has died; leaving the job to another", job=self._job_id, attempt=self._attempt)
        try:
            self._orphaned()
        except HalfmoonError as error:
            _log.warning("a gateway will find the job when its lease has run out", job=self._job_id, attempt=self._attempt, error=str(error))
        os._exit(1)


def progress_of(point: TracePoint) -> Progress:
    """Where a solver is, for those who watch the job."""
    return Progress(
        fraction=min(max(_finite(point.fraction) or 0.0, 0.0), 1.0), phase=point.phase, iteration=point.iteration, objective=_finite(point.objective)
    )


def trace_row(point: TracePoint) -> TraceRow:
    """A point of a trace as JSON, which has no NaN."""
    row: dict[str, Any] = point._asdict()
    return {name: _finite(value) if isinstance(value, float) else value for name, value in row.items()}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
