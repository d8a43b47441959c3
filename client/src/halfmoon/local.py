"""A service of its own for a client: ``halfmoon up`` as a child, on a free port."""

import atexit
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from halfmoon.errors import ConnectionFailed

START_SECONDS = 120.0
_READY = "Halfmoon is ready: "
_STOP_SECONDS = 30.0
_GUARD = """
import os, subprocess, sys, threading
service = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
threading.Thread(target=lambda: os._exit(service.wait()), daemon=True).start()
sys.stdin.buffer.read()
service.terminate()
service.wait()
"""
"""A process that ends the service when its input ends: when the client says so, or is gone."""


class LocalService:
    """A running service; ``stop`` ends it and removes its temporary folder."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str, temporary: Path) -> None:
        self.url = url
        self._process = process
        self._temporary = temporary
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the service. A second call does nothing."""
        atexit.unregister(self.stop)
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._temporary, ignore_errors=True)


def started(data: str | None = None, workers: int = 1) -> LocalService:
    """A service that is ready; raises ConnectionFailed if it cannot be started."""
    if find_spec("app") is None or find_spec("workers") is None:
        raise ConnectionFailed(
            "Halfmoon.local() needs the service in this environment: in a checkout of Halfmoon, pip install "
            "--constraint constraints.txt '.[embedded,encoder]' ./client; or run `make serve` there, and call "
            "Halfmoon('http://127.0.0.1:8000')"
        )
    temporary = Path(tempfile.mkdtemp(prefix="halfmoon-"))
    folder = Path(data) if data is not None else temporary / "data"
    log = temporary / "log"
    command = [
        sys.executable,
        "-c",
        _GUARD,
        sys.executable,
        "-m",
        "app.cli",
        "up",
        "--port",
        "0",
        "--data",
        str(folder),
        "--workers",
        str(workers),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)
    try:
        return LocalService(process, _address(process, log), temporary)
    except BaseException:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith(_READY):
                return line.removeprefix(_READY).strip()
        time.sleep(0.05)
    last = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise ConnectionFailed(f"the local service did not start; the end of its log:\n{last}")
