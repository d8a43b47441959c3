"""Processes that may end by themselves while a test looks at them."""

from contextlib import suppress

import psutil


def kill(process: psutil.Process) -> None:
    """Send SIGKILL to a process, if it still runs."""
    with suppress(psutil.NoSuchProcess):
        process.kill()


def runs(process: psutil.Process) -> bool:
    """Whether a process runs, and is not only waited for by its parent."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
