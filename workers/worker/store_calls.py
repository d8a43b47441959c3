"""Calls of the store by a running attempt: retried while the store fails, and a watch on its records.

The watch is a thread that reads whether the attempt has to stop.

outcome    the job was ended by another
attempts   a newer attempt was claimed: the number of an attempt is a fencing token, and the newest alone goes on
cancel     a cancel was requested

They are read every second, every 0.2 s while Redis does not answer. The store decides; Redis, which the heartbeat
reads, is only quicker. A store that hangs delays this thread and nothing else.
"""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

import structlog

from storage.errors import StoreDamaged, StoreUnavailable
from storage.repositories.jobs import Jobs
from workers.worker.heartbeat import Heartbeat, StopReason

T = TypeVar("T")
_FIRST_DELAY_SECONDS = 0.1
_LONGEST_DELAY_SECONDS = 1.0
_POLL_SECONDS = 0.1
_STORE_SECONDS = 1.0
_STORE_SECONDS_WITHOUT_REDIS = 0.2
_STOP_SECONDS = 1.0
"""seconds for which its end is waited for: it may hang in the store, and what it finds then is of no use"""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StoreRetry:
    """Budget of ``seconds`` for the retries of one attempt at a job, all its calls of the store together.

    Calls that fail count, and the delays between them. A call that hangs ends by the time-outs of the bucket, or of the
    mount.
    """

    def __init__(self, seconds: float, stop: Callable[[], bool]) -> None:
        self._left = seconds
        self._stop = stop

    def call(self, act: Callable[[], T], stop: Callable[[], bool] | None = None) -> T:
        """The result of ``act`` once the store allows it. The delay between two calls doubles from 0.1 s to 1 s.

        Raises StoreUnavailable when the budget is used up or ``stop`` (by default that of all calls) returns true,
        StoreDamaged at once: what is damaged stays so.
        """
        delay = _FIRST_DELAY_SECONDS
        while True:
            began = time.monotonic()
            try:
                return act()
            except StoreDamaged:
                raise
            except StoreUnavailable as error:
                self._left -= time.monotonic() - began
                if self._left <= 0 or (stop or self._stop)():
                    raise
                if delay == _FIRST_DELAY_SECONDS:
                    _log.warning("waiting for the store", error=str(error), seconds=round(self._left))
            time.sleep(min(delay, self._left))
            self._left -= delay
            delay = min(2 * delay, _LONGEST_DELAY_SECONDS)


class StoreWatch:
    """Context manager around the training of one attempt. It tells the heartbeat to stop."""

    def __init__(self, jobs: Jobs, job_id: str, attempt: int, heartbeat: Heartbeat) -> None:
        self._jobs = jobs
        self._job_id = job_id
        self._attempt = attempt
        self._heartbeat = heartbeat
        self._done = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name=f"store watch of {job_id}", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        read_at = float("-inf")
        while not self._done.wait(_POLL_SECONDS):
            pause = _STORE_SECONDS_WITHOUT_REDIS if self._heartbeat.without_redis else _STORE_SECONDS
            if self._heartbeat.reason is None and time.monotonic() >= read_at + pause:
                read_at = time.monotonic()
                self._check()

    def _check(self) -> None:
        try:
            outcome = self._jobs.outcome(self._job_id)
            # its own outcome may still have to be published
            if (outcome is not None and outcome.attempt != self._attempt) or self._jobs.last_attempt(
                self._job_id
            ) != self._attempt:
                self._heartbeat.stop(StopReason.SUPERSEDED)
            elif self._jobs.cancel_requested(self._job_id):
                self._heartbeat.stop(StopReason.CANCELLED)
        except StoreUnavailable as error:
            _log.warning("the store does not answer a running job", job=self._job_id, error=str(error))
        except Exception:
            if not self._failed:
                _log.exception("the records of a running job cannot be read", job=self._job_id)
            self._failed = True
