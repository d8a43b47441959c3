"""A cluster for benchmarks, as an operator starts one: its scheduler is in no process that is measured, and can be
killed.
"""

import os
import subprocess
import sys
from typing import Self

import psutil

from benchmarks.running import free_port
from workers.cluster.address import NO_TLS
from workers.cluster.engine import connected

_START = "import sys; from app.cli.commands import main; sys.exit(main(sys.argv[1:]))"


class Cluster:
    """``halfmoon cluster``, in processes of its own; a context manager."""

    def __init__(self, workers: int) -> None:
        self.port, self._n_workers, self._added = free_port(), workers, list[subprocess.Popen[bytes]]()
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        for process in (*self._added, self.process):
            process.terminate()
        for process in (*self._added, self.process):
            process.wait()

    @property
    def address(self) -> str:
        """Of the scheduler."""
        return f"tcp://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return when it has said that it can be used."""
        command = [sys.executable, "-c", _START, "cluster", "--port", str(self.port), "--workers", str(self._n_workers)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise SystemExit("halfmoon cluster did not start")

    def workers(self) -> list[psutil.Process]:
        """The processes of its workers."""
        with connected(self.address, NO_TLS) as client:
            return [psutil.Process(pid) for pid in client.run(os.getpid).values()]

    def add(self) -> None:
        """One more worker, in the way of Dask."""
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            self.address,
            "--nthreads",
            "1",
            "--no-dashboard",
            "--memory-limit",
            "0",
        ]
        self._added.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def kill(self) -> None:
        """The scheduler, and so all that it started."""
        self.process.kill()
        self.process.wait()
