"""The tasks that a message of the queue may name.

A task takes the id of a job and returns it; everything else is in the store.
"""

import signal
import threading
from contextvars import ContextVar

from storage.process.tracing import tracing
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
