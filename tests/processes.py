"""Processes that tests and benchmarks start, kill and start again, and look at while they may end by themselves."""

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import IO, Self

import psutil

from tests.waiting import SLOW


class Program:
    """A program that runs once at a time, and can be killed and started again; a context manager that stops it.

    ``environment`` is added to that of this process; ``output`` and ``errors`` get what the program prints.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] = MappingProxyType({}),
        output: IO[bytes] | int | None = subprocess.DEVNULL,
        url: str = "",
        errors: IO[bytes] | int | None = subprocess.STDOUT,
    ) -> None:
        self._command, self._environment, self._output, self._errors = list(command), environment, output, errors
        self.url = url
        """address, of a program that listens"""
        self._process: psutil.Popen | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def process(self) -> psutil.Popen:
        """The process; fails before the first start."""
        assert self._process is not None, "it was not started"
        return self._process

    @property
    def pid(self) -> int:
        """The process id; 0 before the first start."""
        return self._process.pid if self._process is not None else 0

    def start(self, **more: str) -> None:
        """Start it, with more in its environment."""
        environment = {**os.environ, **self._environment, **more}
        self._process = psutil.Popen(self._command, env=environment, stdout=self._output, stderr=self._errors)

    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it, and wait."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        """Tell it to end, and wait; returns the exit code, 0 of a program that never began."""
        if self._process is None:
            return 0
        self._process.terminate()
        return int(self._process.wait(SLOW))

    def children(self) -> list[psutil.Process]:
        """Processes that it started and that still run."""
        return children(self._process) if self._process is not None else []


def children(process: psutil.Process, *, recursive: bool = False) -> list[psutil.Process]:
    """Children of a process, on request with theirs, none of one that has ended."""
    with suppress(psutil.NoSuchProcess):
        return list(process.children(recursive=recursive))
    return []


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


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
