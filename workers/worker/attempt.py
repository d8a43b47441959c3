"""One attempt at a training job, from the claim to the outcome.

Messages come at-least-once, so several workers may be asked to run a job. What makes its result unique:

1. A worker takes the lease of the next attempt in Redis, then claims the attempt in the store: of many, one gets its
   number.
2. It trains, and stores its files below ``jobs/{id}/attempts/{number}/``, where no other attempt writes.
3. It creates the outcome: of many, the first counts. An attempt that comes too late removes its files.
4. It publishes the outcome as a version of the model: a job has at most one, however often it is published.
"""

import traceback
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import structlog

from core.errors import HalfmoonError
from core.progress import Stopped
from storage.errors import (
    NotFound,
    RedisUnavailable,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
    Unavailable,
)
from storage.problems import TIMED_OUT, problem, problem_of
from storage.process.tracing import Attributes, tracing
from storage.records import Failure, JobRequest, JobState, Outcome, QueuePlace
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from workers.worker.context import WorkerContext
from workers.worker.heartbeat import WITHOUT_OUTCOME, Heartbeat, StopReason
from workers.worker.results import held_out_of
from workers.worker.store_retry import StoreRetry
from workers.worker.store_watch import StoreWatch
from workers.worker.training import Work

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Attempts:
    """Attempts of one worker at jobs, one after the other."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._running: RunningAttempt | None = None

    def run(self, job_id: str) -> None:
        """Run a job to its end. If it is over, or another worker runs it, nothing happens, and the message is dropped.

        Raises Unavailable when the store fails for too long, or Redis at the beginning: then the attempt is lost, and
        the job is run again.
        """
        number = self._take_lease(job_id)
        if number is None:
            return
        self._running = RunningAttempt(self._context, job_id, number)
        try:
            self._running.run()
        finally:
            self._running = None
            with suppress(RedisUnavailable):
                self._context.redis_state.leases.release(job_id, number, self._context.worker)

    def hand_back(self) -> None:
        """Ask the running attempt, if there is one, to stop and give its job to another worker.

        Safe in a signal handler.
        """
        if self._running is not None:
            self._running.heartbeat.stop(StopReason.HANDED_BACK)

    def _take_lease(self, job_id: str) -> int | None:
        """Take the lease of the next attempt; returns its number, None if there is nothing to do."""
        leases, jobs = self._context.redis_state.leases, Jobs(self._context.store)
        seconds = self._context.settings.lease_seconds
        try:
            job = jobs.get(job_id)
        except NotFound:
            # the job was over, and was deleted while its message waited
            return None
        last = job.attempt
        if (
            jobs.withdraw_if_deleted(job.request)
            or job.outcome is not None
            or (last and leases.held(job_id, last, seconds))
        ):
            return None
        return last + 1 if leases.acquire(job_id, last + 1, self._context.worker, seconds) else None


class RunningAttempt:
    """One attempt at a job, whose lease is taken: its heartbeat, and its budget for retries of the store."""

    def __init__(self, context: WorkerContext, job_id: str, number: int) -> None:
        self._context = context
        self._jobs = Jobs(context.store)
        self._job_id, self._number = job_id, number
        self._prefix = f"jobs/{job_id}/attempts/{number}"
        self._place: QueuePlace | None = None
        self.heartbeat = Heartbeat(context, job_id, number)
        self._retry = StoreRetry(context.settings.store_retry_seconds, lambda: self.heartbeat.reason is not None)

    def run(self) -> None:
        """Claim the attempt and run it to its outcome, or hand its job back; nothing if another worker was first."""
        # the lease is kept from here on, however long the store takes
        with self.heartbeat:
            claim = partial(
                self._jobs.claim_attempt, self._job_id, self._context.worker, self._number, datetime.now(UTC)
            )
            claimed = self._retry.call(claim)
            ended = claimed is None or self._watched(claimed.started_at)
        # not before the heartbeat has stopped renewing the lease
        if not ended:
            self._hand_back_job()

    def _watched(self, started_at: datetime) -> bool:
        """Run the attempt while the store is watched for its end; false if it was handed back or superseded."""
        _log.info("attempt begins", job=self._job_id, attempt=self._number)
        with suppress(RedisUnavailable):
            self._context.redis_state.clear_progress(self._job_id)
            self._context.redis_state.note_change(self._job_id)
        with StoreWatch(self._jobs, self._job_id, self._number, self.heartbeat):
            try:
                request = self._retry.call(lambda: self._jobs.request(self._job_id))
                self._place = QueuePlace(request.size, request.caller)
                return self._train_and_publish(request, started_at)
            except NotFound:
                # another attempt had ended it; what is left here may be files of a version, which garbage collection
                # knows
                _log.info("the job was over and was deleted", job=self._job_id, attempt=self._number)
                return True
            except StoreUnavailable:
                # the worker was told to stop while it waited for the store: that is no death
                if self.heartbeat.reason is not StopReason.HANDED_BACK:
                    raise
                return False

    def _train_and_publish(self, request: JobRequest, started_at: datetime) -> bool:
        """Reach the outcome, record and publish it, in spans that continue the trace of the request; false if the
        attempt was given up.
        """
        about: Attributes = {
            **{f"halfmoon.{name}": getattr(request, name) for name in ("model", "algorithm", "dataset", "size")},
            "halfmoon.job": request.id,
            "halfmoon.attempt": self._number,
        }
        with tracing.span(f"train {request.algorithm}", about, parent=request.traceparent, kind="consumer") as span:
            if self._number == 1:
                tracing.add("wait in queue", request.created_at, started_at)
            outcome = self._train(request)
            if outcome is not None:
                with tracing.span("publish"):
                    self._publish(request, started_at, outcome)
            if span is not None:
                span.set_attribute("halfmoon.outcome", "handed back" if outcome is None else outcome.state.value)
                if outcome is not None and outcome.error is not None:
                    tracing.mark_failed(span, outcome.error.type)
        return outcome is not None

    def _train(self, request: JobRequest) -> Outcome | None:
        """Train, store the results and return the outcome; None if the attempt was handed back or superseded."""
        work = Work(self._context, request, self.heartbeat, self._retry, self._prefix)
        try:
            if self._retry.call(lambda: self._jobs.cancel_requested(request.id)):
                return self._ended(JobState.CANCELLED)
            training, comparison, files = work.run()
        except Exception as error:
            return self._after_error(error)
        return self._ended(JobState.SUCCEEDED).model_copy(
            update={
                "status": training.status,
                "objective": training.objective,
                "warnings": [*training.warnings, *([] if comparison.takes_over else [comparison.why])],
                "report": training.report,
                "comparison": comparison,
                "held_out": held_out_of(training),
                "files": files,
            }
        )

    def _after_error(self, error: Exception) -> Outcome | None:
        """The outcome of an attempt that ended with an error; None if another worker gets the job, or has it.

        An error that a later attempt may not meet is raised again.
        """
        match error:
            case Stopped():
                return self._after_stop()
            case StoreFull() if self.heartbeat.reason is not None:  # asked to stop while it waited
                return self._after_stop()
            case StoreFull() | StoreDamaged():
                pass
            case Unavailable():
                raise error
            case HalfmoonError():
                pass
            case _:
                _log.error("training failed", job=self._job_id, attempt=self._number, traceback=traceback.format_exc())
        return self._ended(JobState.FAILED, error=problem_of(error))

    def _after_stop(self) -> Outcome | None:
        """The outcome of an attempt that was asked to stop; None if another worker gets the job, or has it."""
        if self.heartbeat.reason in WITHOUT_OUTCOME:
            return None
        if self.heartbeat.reason is StopReason.TIMED_OUT:
            seconds = self._context.settings.job_timeout_seconds
            detail = f"the job ran for more than the {seconds:g} seconds that a job may take here"
            return self._ended(JobState.FAILED, error=problem(TIMED_OUT, detail))
        return self._ended(JobState.CANCELLED)

    def _ended(self, state: JobState, error: Failure | None = None) -> Outcome:
        return Outcome(state=state, attempt=self._number, finished_at=datetime.now(UTC), error=error)

    def _publish(self, request: JobRequest, started_at: datetime, outcome: Outcome) -> None:
        """Store the trace, create the outcome and publish it; if there is another already, remove the files of this
        attempt. Each is retried while the store does not answer.
        """

        def stop() -> bool:
            return self.heartbeat.reason in WITHOUT_OUTCOME

        complete = self._retry.call(lambda: self._completed(outcome, request), stop)
        redis_state = self._context.redis_state
        won = self._retry.call(lambda: self._jobs.end(request, complete, started_at, redis_state), stop)
        if not won:
            self._retry.call(lambda: self._context.store.delete(self._prefix), stop)
        _log.info("attempt ends", job=request.id, attempt=self._number, state=outcome.state.value, won=won)

    def _completed(self, outcome: Outcome, request: JobRequest) -> Outcome:
        """The outcome with the progress and the trace of the attempt, which Redis forgets, and from which number on its
        version is looked for.
        """
        files = dict(outcome.files)
        if "trace" not in files and self.heartbeat.trace:
            files["trace"] = self._jobs.store_trace(f"{self._prefix}/trace.json", self.heartbeat.trace)
        before = Models(self._context.store).last_number(request.model) if outcome.state is JobState.SUCCEEDED else 0
        return outcome.model_copy(
            update={"progress": self.heartbeat.progress, "files": files, "versions_before": before}
        )

    def _hand_back_job(self) -> None:
        """Record that the attempt did not die; unless it was superseded, enqueue the job again."""
        self._retry.call(lambda: self._jobs.record_hand_back(self._job_id, self._number), lambda: False)
        if self.heartbeat.reason is StopReason.SUPERSEDED:
            _log.warning("attempt was superseded", job=self._job_id, attempt=self._number)
            return
        # without Redis the reconciler finds the job without a lease, and enqueues it
        with suppress(RedisUnavailable):
            self._context.redis_state.leases.release(self._job_id, self._number, self._context.worker)
            if self._place is not None:  # else the store was away, and the reconciler enqueues it as well
                self._context.queue.enqueue(self._job_id, self._place, at_front=True)
        _log.info("attempt handed back", job=self._job_id, attempt=self._number)
