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
from core.watch import Stopped
from storage.errors import (
    NotFound,
    QueueUnavailable,
    RedisStateUnavailable,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
    Unavailable,
)
from storage.problems import TIMED_OUT, problem, problem_of
from storage.process.tracing import Attributes, tracing
from storage.records import Attempt, JobRequest, JobState, Outcome, Place, Problem
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from workers.worker.comparison import held_out_of
from workers.worker.context import WorkerContext
from workers.worker.heartbeat import WITHOUT_OUTCOME, Heartbeat, StopReason
from workers.worker.store_calls import StoreRetry, StoreWatch
from workers.worker.training import Work

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Attempts:
    """Attempts of one worker at jobs, one after the other."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._jobs = Jobs(context.store)
        self._heartbeat: Heartbeat | None = None
        self._place: Place | None = None
        self._store_retry = StoreRetry(context.store_retry_seconds)

    def run(self, job_id: str) -> None:
        """Run a job to its end. If it is over, or another worker runs it, nothing happens, and the message is dropped.

        Raises Unavailable when the store fails for too long, or Redis at the beginning: then the attempt is lost, and
        the job is run again.
        """
        number = self._take_lease(job_id)
        if number is None:
            return
        context = self._context
        heartbeat = Heartbeat(
            context.redis_state,
            job_id,
            number,
            context.worker,
            lease_seconds=context.lease_seconds,
            job_timeout_seconds=context.job_timeout_seconds,
            worker_pid=context.worker_pid,
            on_orphaned=partial(self._requeue, job_id, number),
        )
        self._place = None
        self._heartbeat, self._store_retry = heartbeat, StoreRetry(context.store_retry_seconds)
        try:
            # the lease is kept from here on, however long the store takes
            with heartbeat:
                attempt = self._claim(job_id, number, heartbeat)
                ended = attempt is None or self._run(job_id, attempt, heartbeat)
            # not before the heartbeat has stopped renewing the lease
            if attempt is not None and not ended:
                self._hand_back_job(job_id, attempt, heartbeat.reason)
        finally:
            self._heartbeat = None
            with suppress(RedisStateUnavailable):
                context.redis_state.leases.release(job_id, number, context.worker)

    def _run(self, job_id: str, attempt: Attempt, heartbeat: Heartbeat) -> bool:
        """Run an attempt to its outcome; false if it was handed back or superseded."""
        _log.info("attempt begins", job=job_id, attempt=attempt.number)
        with suppress(RedisStateUnavailable):
            self._context.redis_state.clear_progress(job_id)
            self._context.redis_state.note_change(job_id)
        with StoreWatch(self._jobs, job_id, attempt.number, heartbeat):
            try:
                request = self._store_retry.call(
                    lambda: self._jobs.get(job_id).request, lambda: heartbeat.reason is not None
                )
                self._place = Place(request.size, request.caller)
                outcome = self._traced(request, attempt, heartbeat)
            except NotFound:
                # another attempt had ended it; what is left here may be files of a version, which garbage collection
                # knows
                _log.info("the job was over and was deleted", job=job_id, attempt=attempt.number)
                return True
            except StoreUnavailable:
                # the worker was told to stop while it waited for the store: that is no death
                if heartbeat.reason is not StopReason.HANDED_BACK:
                    raise
                return False
        return outcome is not None

    def _traced(self, request: JobRequest, attempt: Attempt, heartbeat: Heartbeat) -> Outcome | None:
        """Reach the outcome, record and publish it, in spans that continue the trace of the request;

        None if the attempt was given up.
        """
        about: Attributes = {
            f"halfmoon.{name}": getattr(request, name) for name in ("model", "algorithm", "dataset", "size")
        }
        about = {**about, "halfmoon.job": request.id, "halfmoon.attempt": attempt.number}
        with tracing.span(f"train {request.algorithm}", about, parent=request.traceparent, kind="consumer") as span:
            if attempt.number == 1:
                tracing.add("wait in queue", request.created_at, attempt.started_at)
            outcome = self._outcome(request, attempt, heartbeat)
            if outcome is not None:
                with tracing.span("publish"):
                    self._record_outcome(request, attempt, outcome, heartbeat)
            if span is not None:
                span.set_attribute("halfmoon.outcome", "handed back" if outcome is None else outcome.state.value)
                if outcome is not None and outcome.error is not None:
                    tracing.mark_failed(span, outcome.error.type)
        return outcome

    def hand_back(self) -> None:
        """Ask the running attempt, if there is one, to stop and give its job to another worker.

        Safe in a signal handler.
        """
        if self._heartbeat is not None:
            self._heartbeat.stop(StopReason.HANDED_BACK)

    def _requeue(self, job_id: str, number: int) -> None:
        """Enqueue the job of this process again, which ends because its worker has died."""
        self._context.reconciler().retry_now(job_id, number)

    def _take_lease(self, job_id: str) -> int | None:
        """Take the lease of the next attempt; returns its number, None if there is nothing to do."""
        leases = self._context.redis_state.leases
        try:
            job = self._jobs.get(job_id)
        except NotFound:
            # the job was over, and was deleted while its message waited
            return None
        last = job.attempt
        if (
            self._jobs.withdraw_if_deleted(job.request)
            or self._jobs.has_outcome(job_id)
            or (last and leases.held(job_id, last, self._context.lease_seconds))
        ):
            return None
        return last + 1 if leases.acquire(job_id, last + 1, self._context.worker, self._context.lease_seconds) else None

    def _claim(self, job_id: str, number: int, heartbeat: Heartbeat) -> Attempt | None:
        """Claim the attempt of the lease that was taken; None if another worker was first."""
        claim = partial(self._jobs.claim_attempt, job_id, self._context.worker, number, datetime.now(UTC))
        return self._store_retry.call(claim, lambda: heartbeat.reason is not None)

    def _outcome(self, request: JobRequest, attempt: Attempt, heartbeat: Heartbeat) -> Outcome | None:
        """Train, store the results and return the outcome; None if the attempt was handed back or superseded."""
        work = Work(self._context, request, heartbeat, self._store_retry, _prefix_of(request.id, attempt.number))
        try:
            cancelled = self._store_retry.call(
                lambda: self._jobs.cancel_requested(request.id), lambda: heartbeat.reason is not None
            )
            if cancelled:
                return _ended(attempt, JobState.CANCELLED)
            training, comparison, files = work.done()
        except Exception as error:
            return self._outcome_of(error, attempt, heartbeat)
        return _ended(attempt, JobState.SUCCEEDED).model_copy(
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

    def _outcome_of(self, error: Exception, attempt: Attempt, heartbeat: Heartbeat) -> Outcome | None:
        """The outcome of an attempt that ended with an error; None if another worker gets the job, or has it.

        An error that a later attempt may not meet is raised again.
        """
        match error:
            case Stopped():
                return _outcome_of_stop(attempt, heartbeat.reason, self._context.job_timeout_seconds)
            case StoreFull() if heartbeat.reason is not None:  # asked to stop while it waited
                return _outcome_of_stop(attempt, heartbeat.reason, self._context.job_timeout_seconds)
            case StoreFull() | StoreDamaged():
                pass
            case Unavailable():
                raise error
            case HalfmoonError():
                pass
            case _:
                _log.error(
                    "training failed", job=heartbeat.job_id, attempt=attempt.number, traceback=traceback.format_exc()
                )
        return _ended(attempt, JobState.FAILED, error=problem_of(error))

    def _record_outcome(self, request: JobRequest, attempt: Attempt, outcome: Outcome, heartbeat: Heartbeat) -> None:
        """Store the trace, then the outcome, and publish it; retried while the store does not answer."""

        def stop() -> bool:
            return heartbeat.reason in WITHOUT_OUTCOME

        complete = self._store_retry.call(lambda: self._completed(outcome, request, heartbeat), stop)
        self._store_retry.call(lambda: self._record(request, attempt, complete), stop)

    def _record(self, request: JobRequest, attempt: Attempt, outcome: Outcome) -> None:
        """Create the outcome and publish it; if there is another already, remove the files of this attempt.

        Idempotent.
        """
        won = self._jobs.end(request, outcome, attempt.started_at, self._context.redis_state)
        if not won:
            self._context.store.delete(_prefix_of(request.id, attempt.number))
        _log.info("attempt ends", job=request.id, attempt=attempt.number, state=outcome.state.value, won=won)

    def _completed(self, outcome: Outcome, request: JobRequest, heartbeat: Heartbeat) -> Outcome:
        """The outcome with the progress and the trace of the attempt, which Redis forgets, and from which number on its
        version is looked for.
        """
        files = dict(outcome.files)
        if "trace" not in files and heartbeat.trace:
            files["trace"] = self._jobs.store_trace(
                f"{_prefix_of(request.id, outcome.attempt)}/trace.json", heartbeat.trace
            )
        before = Models(self._context.store).last_number(request.model) if outcome.state is JobState.SUCCEEDED else 0
        return outcome.model_copy(update={"progress": heartbeat.progress, "files": files, "versions_before": before})

    def _hand_back_job(self, job_id: str, attempt: Attempt, reason: StopReason | None) -> None:
        """Record that the attempt did not die; unless it was superseded, enqueue the job again."""
        self._store_retry.call(lambda: self._jobs.record_hand_back(job_id, attempt.number), lambda: False)
        if reason is StopReason.SUPERSEDED:
            _log.warning("attempt was superseded", job=job_id, attempt=attempt.number)
            return
        # without Redis the reconciler finds the job without a lease, and enqueues it
        with suppress(RedisStateUnavailable, QueueUnavailable):
            self._context.redis_state.leases.release(job_id, attempt.number, self._context.worker)
            if self._place is not None:  # else the store was away, and the reconciler enqueues it as well
                self._context.queue.enqueue(job_id, self._place, at_front=True)
        _log.info("attempt handed back", job=job_id, attempt=attempt.number)


def _outcome_of_stop(attempt: Attempt, reason: StopReason | None, job_timeout_seconds: float) -> Outcome | None:
    """The outcome of an attempt that was asked to stop; None if another worker gets the job, or has it."""
    if reason in WITHOUT_OUTCOME:
        return None
    if reason is StopReason.TIMED_OUT:
        detail = f"the job ran for more than the {job_timeout_seconds:g} seconds that a job may take here"
        return _ended(attempt, JobState.FAILED, error=problem(TIMED_OUT, detail))
    return _ended(attempt, JobState.CANCELLED)


def _ended(attempt: Attempt, state: JobState, error: Problem | None = None) -> Outcome:
    return Outcome(state=state, attempt=attempt.number, finished_at=datetime.now(UTC), error=error)


def _prefix_of(job_id: str, number: int) -> str:
    return f"jobs/{job_id}/attempts/{number}"
