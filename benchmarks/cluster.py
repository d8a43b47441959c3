"""A cluster for benchmarks, as an operator starts one: its scheduler is in no process that is measured, and can be
killed.
"""

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import psutil

from tests.processes import Program, free_port
from workers.cluster.address import NO_TLS, TlsFiles
from workers.cluster.engine import connected

_START = "import sys; from app.cli.commands import main; sys.exit(main(sys.argv[1:]))"


class Cluster(Program):
    """``halfmoon cluster``, in processes of its own; a context manager."""

    def __init__(self, workers: int) -> None:
        port, self._added = free_port(), list[Program]()
        self.files = NO_TLS
        command = [sys.executable, "-c", _START, "cluster", "--port", str(port), "--workers", str(workers)]
        super().__init__(command, output=subprocess.PIPE, url=f"tls://127.0.0.1:{port}", errors=subprocess.DEVNULL)

    def start(self, **more: str) -> None:
        """Start it, and return when it has said that it can be used."""
        super().start(**more)
        said = self.process.stdout.readline()
        if not said:
            raise SystemExit("halfmoon cluster did not start")
        paths = (word.partition("=")[2] for word in said.split() if "=" in word)
        self.files = TlsFiles(*map(Path, islice(paths, 1, None)))

    def stop(self) -> int:
        """End all processes."""
        for program in self._added:
            program.stop()
        return super().stop()

    def workers(self) -> list[psutil.Process]:
        """The processes of its workers."""
        with connected(self.url, self.files) as client:
            return [psutil.Process(pid) for pid in client.run(os.getpid).values()]

    def add(self) -> None:
        """Start one more worker, in the way of Dask."""
        files = (f"--tls-{name}={path}" for name, path in zip(("ca-file", "cert", "key"), self.files, strict=True))
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.url, *files]
        self._added.append(Program([*command, "--nthreads", "1", "--no-dashboard", "--memory-limit", "0"]))
        self._added[-1].start()
