"""A service for the demo alone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from workers.errors import CannotStart
from workers.process import die_with_parent

SLOWEST_START = 120.0
"""seconds that the service may take to be ready"""


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """``halfmoon up`` as a child; gives its address. Raises CannotStart, with its last words, when it is not ready in time."""
    log = folder / "log"
    command = [sys.executable, "-m", "app.cli", "up", "--port", "0", "--data", str(folder / "data")]
    end_too = partial(die_with_parent, os.getpid(), signal.SIGTERM)
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, preexec_fn=end_too) as process,
    ):
        try:
            yield _address(process, log)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + SLOWEST_START
    while process.poll() is None and time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("Halfmoon is ready: "):
                return line.removeprefix("Halfmoon is ready: ")
        time.sleep(0.1)
    raise CannotStart("the demo's service did not start; its last words:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:]))
