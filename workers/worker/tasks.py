"""The messages of the queue, the one task that they may name, and the worker of RQ that runs it.

The task takes the id of a job and returns it; everything else is in the store. The worker outlasts its Redis, and hands
its job back when it is told to stop.
"""

import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import rq
import structlog
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from storage.names import is_id
from storage.process.system import die_with_parent, set_process_name
from storage.process.tracing import tracing
from storage.queue.ordered_queue import OrderedQueue
from storage.queue.queue import TASK
from storage.repositories.job_attempts import Death
from storage.store.forks import check_fork
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext

worker_context: ContextVar[WorkerContext] = ContextVar("working")
"""Context of this process, set by ``workers.worker.run`` before the first job: RQ calls tasks by name, and passes ids
only."""


def train(job_id: str) -> str:
    """Run a training job; see ``workers.worker.attempt``. SIGTERM hands it back."""
    context = worker_context.get()
    attempts = Attempts(context)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: attempts.hand_back())
    if context.traced:
        tracing.start("halfmoon-worker")
    try:
        attempts.run(job_id)
    finally:
        tracing.stop()
    return job_id


class ForeignMessage(Exception):
    """A message that no gateway of this service has sent."""


class Message(Job):
    """A message of the queue, which names the task to run. RQ would import and call whatever function a message names.

    So who can write to Redis could run any function here. A message may name one task alone, and neither callbacks nor
    webhooks.
    """

    success_callback = failure_callback = stopped_callback = None

    @property
    def func(self) -> Callable[[str], str]:
        """The task; raises ForeignMessage if the message names another function, or an object that has it."""
        if self.func_name != TASK or self.instance is not None or self.kwargs or not is_job_id(self.args):
            raise ForeignMessage(
                f"the message {self.id!r} does not name the task {TASK} with the id of a job, so it is not run"
            )
        return train

    def send_webhooks(self, status: Any, *, exc_string: str | None = None) -> None:
        """Do nothing: a message has no webhooks."""


def is_job_id(arguments: object) -> bool:
    """Whether the arguments of a message are the id of a job alone."""
    return (
        isinstance(arguments, list | tuple)
        and len(arguments) == 1
        and isinstance(arguments[0], str)
        and is_id("job", arguments[0])
    )


_MONITORING_SECONDS = 5
_TTL_SECONDS = 30
_MAINTENANCE_SECONDS = 60
_LONGEST_WAIT_SECONDS = 2.0
KILL_AFTER_SECONDS = 10.0
"""Seconds between SIGTERM, which asks a job to be handed back, and SIGKILL."""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class RQWorker(rq.Worker):
    """Takes messages and runs each in a forked child, which RQ calls the work horse."""

    max_connection_wait_time = _LONGEST_WAIT_SECONDS
    stopping = False
    """whether the worker was told to stop"""

    def __init__(
        self,
        queue: OrderedQueue,
        name: str,
        redis: Redis,
        *,
        drain_seconds: float,
        killed: Callable[[str, Death], None],
    ) -> None:
        super().__init__(
            [queue],
            name=name,
            connection=redis,
            job_class=Message,
            queue_class=OrderedQueue,
            serializer=JSONSerializer,
            worker_ttl=_TTL_SECONDS,
            job_monitoring_interval=_MONITORING_SECONDS,
            maintenance_interval=_MAINTENANCE_SECONDS,
            work_horse_killed_handler=lambda job, pid, status, usage: (
                killed(job.args[0], _death(status, usage)) if is_job_id(job.args) else None
            ),
        )
        self._drain_seconds = drain_seconds
        self._own_pid = os.getpid()

    def run(self, stop: threading.Event) -> bool:
        """Work until told to stop, then true; false if Redis was lost. Then this worker cannot be used again, and a new
        one is needed.

        ``stop`` is set by a signal that came before.

        Raises UsedBeforeFork where the children could not use the store.
        """
        check_fork()
        self._stop_requested_before = stop
        try:
            self.work(logging_level=logging.getLevelName(logging.getLogger("rq.worker").level))
        except (RedisError, OSError, ValueError) as error:
            _log.warning("Redis is lost", error=str(error))
        return self.stopping

    def _install_signal_handlers(self) -> None:
        super()._install_signal_handlers()  # type: ignore[no-untyped-call]
        # what came until this moment was heard by others
        if self._stop_requested_before.is_set():
            self.stopping = self._stop_requested = True

    def fork_work_horse(self, job: Job, queue: Queue) -> None:
        """Fork; raises UsedBeforeFork, which ends this worker, where the child could not use the store."""
        check_fork()
        super().fork_work_horse(job, queue)

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        """Run a job, in the child. The child dies with this worker, so that no stray process computes."""
        die_with_parent(self._own_pid)
        set_process_name("halfmoon-job")
        super().main_work_horse(job, queue)

    def request_stop(self, signum: Any, frame: Any) -> None:
        """Stop at once while idle; else when the running job has ended or, after the drain time, was handed back."""
        self.stopping = True
        super().request_stop(signum, frame)  # type: ignore[no-untyped-call]

    def handle_warm_shutdown_request(self) -> None:
        """Give the running job its drain time, then ask it to be handed back, then kill it."""
        _log.info("told to stop", worker=self.name, drain_seconds=self._drain_seconds)
        for seconds, what in (
            (self._drain_seconds, signal.SIGTERM),
            (self._drain_seconds + KILL_AFTER_SECONDS, signal.SIGKILL),
        ):
            timer = threading.Timer(seconds, self._signal_child, (what,))
            timer.daemon = True
            timer.start()

    def set_shutdown_requested_date(self) -> None:
        """Override RQ's method with nothing.

        RQ would write to Redis here, in a signal handler, which must not fail when Redis does not answer.
        """

    def maintain_heartbeats(self, job: Job) -> None:
        """Renew the records of RQ about a running job; nothing depends on them, so without Redis go on."""
        try:
            super().maintain_heartbeats(job)
        except Exception as error:
            _log.warning("Redis does not answer", error=str(error))

    def set_current_job_working_time(self, current_job_working_time: float, pipeline: Any = None) -> None:
        """Record for RQ how long a job has run; without Redis go on."""
        with suppress(RedisError, OSError):
            super().set_current_job_working_time(current_job_working_time, pipeline)

    def _signal_child(self, what: signal.Signals) -> None:
        if self.horse_pid:
            _log.info("the running job is asked to be handed back", worker=self.name, signal=what.name)
            self.kill_horse(what)


def _death(status: int, usage: resource.struct_rusage | None) -> Death:
    """How a child ended, by its exit status and resource usage; Linux counts memory in KiB, macOS in bytes."""
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) if usage else 0
    return Death(signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None, peak_bytes=peak)
