"""One attempt at a training job, from the claim to the outcome."""

import time
import traceback
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import structlog

from core.errors import HalfmoonError
from core.memory_estimate import Size, remedy, training_bytes
from core.options.text import TextOptions
from core.problem.result import Status
from core.registry import algorithm as find_algorithm
from core.watch import Stopped, Watch
from workers.contract import Attempt, JobRequest, JobState, Outcome, Problem
from workers.errors import JobTooLarge, NotFound, QueueUnavailable, RedisStateUnavailable, StoreDamaged, StoreFull, Unavailable
from workers.problems import NUMERICAL_ERROR, TIMED_OUT, problem, problem_of
from workers.queue.queue import Queue
from workers.queue.redis_state import RedisState
from workers.repositories.datasets import Datasets, Documents
from workers.repositories.jobs import Jobs
from workers.repositories.models import Models
from workers.store import Store
from workers.upkeep.reconcile import Reconciler
from workers.worker.heartbeat import WITHOUT_OUTCOME, Heartbeat, StopReason
from workers.worker.inputs import reading, size_of, text_remedy
from workers.worker.results import store_results, usable
from workers.worker.store_retry import Patience

if TYPE_CHECKING:
    from core.train import Training

_OUT_OF_RANGE = "the numbers of the training ran out of range, so there is no model; raise lambda or scale the values of the documents"
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Parts(NamedTuple):
    """What a worker works with."""

    store: Store
    redis_state: RedisState
    queue: Queue
    worker: str
    """name of the worker, unique among all that live"""
    threads: int
    """0: as many as there are processors"""
    lease_seconds: float
    job_seconds: float
    store_seconds: float
    """how long a job waits for a store that is full or away"""
    max_attempts: int
    max_model_bytes: int
    max_job_bytes: int
    worker_pid: int
    """process that watches over the attempts: the one that runs them or its parent"""


class Attempts:
    """Runs jobs, one after the other."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._jobs = Jobs(parts.store)
        self._heartbeat: Heartbeat | None = None
        self._patience = Patience(parts.store_seconds)

    def run(self, job_id: str) -> None:
        """Run a job to its end, unless it is over or somebody else runs it; then the message that brought it here is dropped.

        Raises Unavailable when the store fails for too long, or Redis at the beginning: the attempt is lost, and the job will be tried again.
        """
        attempt = self._claim(job_id)
        if attempt is None:
            return
        parts = self._parts
        _log.info("attempt begins", job=job_id, attempt=attempt.number)
        heartbeat = Heartbeat(
            self._jobs,
            parts.redis_state,
            job_id,
            attempt.number,
            parts.worker,
            lease_seconds=parts.lease_seconds,
            job_timeout_seconds=parts.job_seconds,
            worker_pid=parts.worker_pid,
            on_orphaned=partial(self._bequeath, job_id, attempt.number),
        )
        self._heartbeat, self._patience = heartbeat, Patience(parts.store_seconds)
        try:
            with heartbeat:
                request = self._jobs.get(job_id).request
                outcome = self._outcome(request, attempt, heartbeat)
                if outcome is not None:
                    self._end(request, attempt, outcome, heartbeat)
            # not before the heart has stopped renewing the lease
            if outcome is None:
                self._let_go(job_id, attempt, heartbeat.reason)
        finally:
            self._heartbeat = None
            with suppress(RedisStateUnavailable):
                parts.redis_state.leases.release(job_id, attempt.number)

    def hand_back(self) -> None:
        """Ask the running attempt, if there is one, to stop and give its job to another worker. Safe in a signal handler."""
        if self._heartbeat is not None:
            self._heartbeat.stop(StopReason.HANDED_BACK)

    def _bequeath(self, job_id: str, number: int) -> None:
        """The worker that watched over this process has died, and it ends too: another is to have the job at once."""
        parts = self._parts
        reconciler = Reconciler(self._jobs, parts.redis_state, parts.queue, lease_seconds=parts.lease_seconds, max_attempts=parts.max_attempts)
        reconciler.next_chance(job_id, number)

    def _claim(self, job_id: str) -> Attempt | None:
        """The next attempt, with its lease held; None if there is nothing to do."""
        parts = self._parts
        try:
            last = self._jobs.get(job_id).attempt
        except NotFound:
            # it was over, and was deleted while this message waited
            return None
        if self._jobs.over(job_id) or (last and parts.redis_state.leases.held(job_id, last)):
            return None
        if not parts.redis_state.leases.acquire(job_id, last + 1, parts.worker, parts.lease_seconds):
            return None
        attempt = self._jobs.begin(job_id, parts.worker, last + 1)
        if attempt is None:
            parts.redis_state.leases.release(job_id, last + 1)
            return None
        parts.redis_state.clear_progress(job_id)
        return attempt

    def _outcome(self, request: JobRequest, attempt: Attempt, heartbeat: Heartbeat) -> Outcome | None:
        """How the attempt ends; None if it was handed back or overtaken."""

        def stopped() -> bool:
            return heartbeat.reason is not None

        if self._jobs.cancel_requested(request.id):
            return _ended(attempt, JobState.CANCELLED)
        try:
            documents = self._patience.insist(lambda: Datasets(self._parts.store).open(request.dataset), stopped)
            training = self._train(request, documents, heartbeat)
            if training.status is Status.CANCELLED:
                return _stopped(attempt, heartbeat.reason, self._parts.job_seconds)
            if not usable(training):
                return _ended(attempt, JobState.FAILED, error=problem(NUMERICAL_ERROR, _OUT_OF_RANGE))
            prefix = _files_of(request.id, attempt.number)
            files = self._patience.insist(lambda: store_results(self._parts.store, training, documents, prefix), stopped)
        except StoreFull as error:
            # whoever waited in vain may be wanted elsewhere by now
            stop = _stopped(attempt, heartbeat.reason, self._parts.job_seconds)
            return stop if stopped() else _ended(attempt, JobState.FAILED, error=problem_of(error))
        except StoreDamaged as error:
            return _ended(attempt, JobState.FAILED, error=problem_of(error))
        except Unavailable:
            raise
        except Stopped:
            return _stopped(attempt, heartbeat.reason, self._parts.job_seconds)
        except Exception as error:
            if not isinstance(error, HalfmoonError):
                _log.error("training failed", job=request.id, attempt=attempt.number, traceback=traceback.format_exc())
            return _ended(attempt, JobState.FAILED, error=problem_of(error))
        return _ended(attempt, JobState.SUCCEEDED).model_copy(
            update={
                "status": training.status,
                "objective": training.objective,
                "warnings": list(training.warnings),
                "report": training.report,
                "files": files,
            }
        )

    def _train(self, request: JobRequest, documents: Documents, heartbeat: Heartbeat) -> "Training":
        # imported late: Numba takes a second to load, and only who trains needs it
        from core.train import train

        parts, class_indices, began = self._parts, documents.class_indices, time.monotonic()
        with ExitStack() as stack:
            begun = partial(reading, parts.store, documents.rows, request.text, Watch(heartbeat.observe, began=began), parts.max_job_bytes)
            check = partial(self._check_memory, request, int(np.count_nonzero(class_indices >= 0)), len(documents.classes))
            check(size_of(documents.rows, request.text))
            read = self._patience.insist(lambda: stack.enter_context(begun()), lambda: heartbeat.reason is not None)
            check(size_of(read.rows, None))
            start = None
            if request.start is not None:
                models = Models(parts.store)
                start = read.renumbered(models.load(models.version(request.start.name, request.start.version)))
            training = train(
                read.rows,
                class_indices,
                documents.classes,
                request.algorithm,
                request.options,
                seed=request.seed,
                start=start,
                observer=heartbeat.observe,
                part=read.rest,
                began=began,
                threads=parts.threads or None,
                max_model_bytes=parts.max_model_bytes,
            )
        model = replace(training.model, vocabulary=read.vocabulary)
        return replace(training, model=model, warnings=[*read.warnings, *training.warnings])

    def _check_memory(self, request: JobRequest, n_labeled: int, n_classes: int, size: Size) -> None:
        """Raises JobTooLarge for what the kernel would kill halfway."""
        options, most = find_algorithm(request.algorithm).options.parse(request.options), self._parts.max_job_bytes
        if size.reading > most:
            raise JobTooLarge(size.reading, most, text_remedy(TextOptions.parse(request.text or {}).ngrams))
        needed = training_bytes(options, size.n_rows, n_labeled, size.n_nonzeros, size.n_features, n_classes)
        if needed > most:
            raise JobTooLarge(needed, most, remedy(options, size.n_rows, n_labeled))

    def _end(self, request: JobRequest, attempt: Attempt, outcome: Outcome, heartbeat: Heartbeat) -> None:
        """Record how the attempt ends, when the store lets it."""

        def leaving() -> bool:
            return heartbeat.reason in WITHOUT_OUTCOME

        told = self._patience.insist(lambda: self._with_course(outcome, request.id, heartbeat), leaving)
        self._patience.insist(lambda: self._conclude(request, attempt, told), leaving)

    def _conclude(self, request: JobRequest, attempt: Attempt, outcome: Outcome) -> None:
        """Record the outcome, unless there is another; then what this attempt has stored is removed. May be repeated."""
        job_id = request.id
        won = self._jobs.finish(job_id, outcome)
        if not won:
            self._parts.store.delete(_files_of(job_id, attempt.number))
        if self._jobs.publish(job_id) is None:
            self._jobs.close(job_id)
        if won:
            with suppress(RedisStateUnavailable):
                self._parts.redis_state.count_outcome(
                    request.algorithm, outcome.state.value, (outcome.finished_at - attempt.started_at).total_seconds()
                )
        _log.info("attempt ends", job=job_id, attempt=attempt.number, state=outcome.state.value, won=won)

    def _with_course(self, outcome: Outcome, job_id: str, heartbeat: Heartbeat) -> Outcome:
        """The outcome with the progress and trace that were told on the way, which Redis forgets."""
        files = dict(outcome.files)
        if "trace" not in files and heartbeat.trace:
            files["trace"] = self._jobs.store_trace(f"{_files_of(job_id, outcome.attempt)}/trace.json", heartbeat.trace)
        return outcome.model_copy(update={"progress": heartbeat.progress, "files": files})

    def _let_go(self, job_id: str, attempt: Attempt, reason: StopReason | None) -> None:
        """Record that this attempt was no death; unless another has taken over, give the job to the next worker."""
        self._jobs.hand_back(job_id, attempt.number)
        if reason is StopReason.SUPERSEDED:
            _log.warning("attempt was overtaken", job=job_id, attempt=attempt.number)
            return
        # without Redis, whoever reconciles finds the job unheld and does the rest
        with suppress(RedisStateUnavailable, QueueUnavailable):
            self._parts.redis_state.leases.release(job_id, attempt.number)
            self._parts.queue.enqueue(job_id, first=True)
        _log.info("attempt handed back", job=job_id, attempt=attempt.number)


def _stopped(attempt: Attempt, reason: StopReason | None, job_seconds: float) -> Outcome | None:
    """The end of an attempt whose solver was asked to stop."""
    if reason in WITHOUT_OUTCOME:
        return None
    if reason is StopReason.TIMED_OUT:
        detail = f"the job ran for more than the {job_seconds:g} seconds that a job may take here"
        return _ended(attempt, JobState.FAILED, error=problem(TIMED_OUT, detail))
    return _ended(attempt, JobState.CANCELLED)


def _ended(attempt: Attempt, state: JobState, error: Problem | None = None) -> Outcome:
    return Outcome(state=state, attempt=attempt.number, finished_at=datetime.now(UTC), error=error)


def _files_of(job_id: str, number: int) -> str:
    return f"jobs/{job_id}/attempts/{number}"
