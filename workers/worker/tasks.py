"""What a queue may name. A task gets an id and returns it: everything else is in the store."""

import signal
import threading
from contextvars import ContextVar

from workers.worker.attempt import Attempts, Parts

working: ContextVar[Parts] = ContextVar("working")
"""What this process works with, set by ``workers.worker.run`` before the first job: RQ calls tasks by name and can hand them ids only."""


def train(job_id: str) -> str:
    """Run a training job; see ``workers.worker.attempt``. SIGTERM hands it back."""
    attempts = Attempts(working.get())
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: attempts.hand_back())
    attempts.run(job_id)
    return job_id
