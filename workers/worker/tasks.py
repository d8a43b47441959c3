"""The messages of the queue, and the one task that they may name.

It takes the id of a job and returns it; everything else is in the store.
"""

import signal
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from rq.job import Job

from storage.names import is_id
from storage.process.tracing import tracing
from storage.queue.queue import TASK
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
