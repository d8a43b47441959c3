"""Gateways and workers as processes of their own, a Valkey, and an S3 server, on one machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import httpx

from app.local.valkey import find_binary, is_ready
from benchmarks.load import status_of
from benchmarks.running import bucket, free_port
from benchmarks.serving.balancer import Balancer

_START_SECONDS = 120.0
_STOP_SECONDS = 60.0


class Fleet:
    """Gateways behind a balancer, and workers; all share a bucket and a Valkey."""

    def __init__(self, settings: Mapping[str, str], balancer: Balancer, log: IO[bytes]) -> None:
        self._environment = {**os.environ, **settings, "PYTHONDONTWRITEBYTECODE": ""}
        self._balancer, self._log = balancer, log
        self.gateways: dict[int, subprocess.Popen[bytes]] = {}
        """gateways by port"""
        self.workers: list[subprocess.Popen[bytes]] = []
        self.url = f"http://127.0.0.1:{balancer.port}"

    def add_gateway(self) -> int:
        """Start a gateway, and send it connections when it is ready; returns its port."""
        port = free_port()
        self.gateways[port] = self._start("api", "--port", str(port))
        self._until(lambda: status_of(f"http://127.0.0.1:{port}", "/v1/health/ready") == 200, self.gateways[port])
        self._balancer.add(port)
        return port

    def replace_gateway(self, port: int) -> float:
        """Start another gateway, then stop this one; returns the seconds that it took to stop."""
        self.add_gateway()
        self._balancer.remove(port)
        return self._stopped(self.gateways.pop(port))

    def kill_gateway(self, port: int) -> None:
        """Kill a gateway, of which the balancer hears nothing but refused connections."""
        gateway = self.gateways.pop(port)
        gateway.kill()
        gateway.wait()

    def add_worker(self) -> None:
        """Start a worker, and wait until it takes jobs."""
        before = self._taking()
        self.workers.append(self._start("worker"))
        self._until(lambda: self._taking() > before, self.workers[-1])

    def replace_worker(self) -> float:
        """Start another worker, then stop the oldest; returns the seconds that it took to stop."""
        self.add_worker()
        return self._stopped(self.workers.pop(0))

    def stop(self) -> None:
        """Stop all of it."""
        processes = [*self.gateways.values(), *self.workers]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(_STOP_SECONDS)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "app.cli", *arguments], env=self._environment, stdout=self._log, stderr=self._log
        )

    def _stopped(self, process: subprocess.Popen[bytes]) -> float:
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        if process.wait(_STOP_SECONDS) != 0:
            raise RuntimeError(f"a process ended with {process.returncode}")
        return time.monotonic() - began

    def _taking(self) -> int:
        return int(httpx.get(f"{self.url}/v1/health/ready", trust_env=False, timeout=30).json().get("workers", 0))

    def _until(self, condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("a process did not start; the log says why")
            time.sleep(0.1)


@contextmanager
def fleet(folder: Path, gateways: int, workers: int, **settings: str) -> Iterator[Fleet]:
    """A running fleet; all of it ends with the block."""
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))
        redis_url = stack.enter_context(_valkey(folder, log))
        environment = {
            **stack.enter_context(bucket("fleet")),
            "HALFMOON_REDIS_URL": redis_url,
            "HALFMOON_ALLOWED_HOSTS": '["*"]',
            **{f"HALFMOON_{name.upper()}": value for name, value in settings.items()},
        }
        made = Fleet({**environment, "HALFMOON_CACHE_DIR": str(folder / "cache")}, stack.enter_context(Balancer()), log)
        stack.callback(made.stop)
        for _ in range(gateways):
            made.add_gateway()
        for _ in range(workers):
            made.add_worker()
        yield made


@contextmanager
def _valkey(folder: Path, log: IO[bytes]) -> Iterator[str]:
    path = folder / "valkey.sock"
    command = [
        find_binary(),
        "--port",
        "0",
        "--unixsocket",
        str(path),
        "--save",
        "",
        "--appendonly",
        "yes",
        "--dir",
        str(folder),
    ]
    with _running(command, log):
        while not is_ready(path):
            time.sleep(0.02)
        yield f"unix://{path}"


@contextmanager
def _running(command: list[str], output: "IO[bytes] | int") -> Iterator[None]:
    process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)
