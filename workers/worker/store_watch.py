"""The watch of a running attempt: a thread that reads in the store whether the attempt has to stop.

outcome    the job was ended by another
attempts   a newer attempt was claimed: the number of an attempt is a fencing token, and the newest alone goes on
cancel     a cancel was requested

They are read every second, every 0.2 s while Redis does not answer. The store decides; Redis, which the heartbeat
reads, is only quicker. A store that hangs delays this thread and nothing else.
"""

import time

import structlog

from storage.errors import StoreUnavailable
from storage.process.background import BackgroundThread
from storage.repositories.jobs import Jobs
from workers.worker.heartbeat import Heartbeat, StopReason

_POLL_SECONDS = 0.1
_STORE_SECONDS = 1.0
_STORE_SECONDS_WITHOUT_REDIS = 0.2
_STOP_SECONDS = 1.0
"""seconds for which its end is waited for: it may hang in the store, and what it finds then is of no use"""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StoreWatch(BackgroundThread):
    """Context manager around the training of one attempt. It tells the heartbeat to stop."""

    def __init__(self, jobs: Jobs, job_id: str, attempt: int, heartbeat: Heartbeat) -> None:
        super().__init__(f"store watch of {job_id}", _STOP_SECONDS)
        self._jobs = jobs
        self._job_id = job_id
        self._attempt = attempt
        self._heartbeat = heartbeat
        self._failed = False

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
