"""Workers as forks of a process that has loaded the kernels: each is ready two seconds sooner."""

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.workers.worker.warm", "workers.worker.run"])


def started(log: Path, settings: dict[str, Any]) -> ForkServerProcess:
    """A worker with a log in a file."""
    process = _FORKS.Process(target=_work, args=(str(log), settings))
    process.start()
    return process


def _work(log: str, settings: dict[str, Any]) -> None:
    from storage.process.settings import Settings
    from workers.worker.run import run_worker

    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    for standard in (sys.stdout, sys.stderr):
        os.dup2(descriptor, standard.fileno())
    sys.exit(run_worker(Settings(**settings), warmed=True))
