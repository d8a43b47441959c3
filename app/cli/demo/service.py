"""A service for the demo alone: ``halfmoon up`` as a child process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from storage.errors import CannotStart
from storage.process.system import die_with_parent

START_TIMEOUT_SECONDS = 120.0
"""seconds within which the service must be ready"""
_POLL_SECONDS = 0.05
_READY = "Halfmoon is ready: "


@contextmanager
def started(folder: Path) -> Iterator[Callable[[], str]]:
    """Start the service; gives a function that waits until it is ready and returns its address.

    That function raises CannotStart, with the last lines of the log, when the service exits or is not ready in time.
    """
    log = folder / "log"
    command = [sys.executable, "-m", "app.cli", "up", "--port", "0", "--data", str(folder / "data")]
    environment = {**os.environ, "HALFMOON_EVENT_POLL_SECONDS": "0.05"}  # the demo waits for eight short jobs
    end_with_this = partial(die_with_parent, os.getpid(), signal.SIGTERM)
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=end_with_this,
        ) as process,
    ):
        try:
            yield partial(_address, process, log)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith(_READY):
                return line.removeprefix(_READY)
        time.sleep(_POLL_SECONDS)
    last_lines = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise CannotStart(f"the demo's service did not start; the end of its log:\n{last_lines}")
