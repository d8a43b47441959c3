"""Gateways and workers as processes of their own, a Valkey, and an S3 server, on one machine."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from benchmarks.load import is_ready, n_taking
from benchmarks.serving.balancer import Balancer
from benchmarks.store_storm.parties import bucket_in
from tests.processes import Program, free_port
from tests.stores import Valkey
from tests.waiting import until

_START_SECONDS = 120.0


class Fleet:
    """Gateways behind a balancer, and workers; all share a bucket and a Valkey."""

    def __init__(self, settings: Mapping[str, str], balancer: Balancer, log: IO[bytes]) -> None:
        self._environment = {**settings, "PYTHONDONTWRITEBYTECODE": ""}
        self._balancer, self._log = balancer, log
        self.gateways: dict[int, Program] = {}
        """gateways by port"""
        self.workers: list[Program] = []
        self.url = f"http://127.0.0.1:{balancer.port}"

    def add_gateway(self) -> int:
        """Start a gateway, and send it connections when it is ready; returns its port."""
        port = free_port()
        self.gateways[port] = self._start("api", "--port", str(port))
        self._until(lambda: is_ready(f"http://127.0.0.1:{port}"), self.gateways[port])
        self._balancer.add(port)
        return port

    def replace_gateway(self, port: int) -> float:
        """Start another gateway, then stop this one; returns the seconds that it took to stop."""
        self.add_gateway()
        self._balancer.remove(port)
        return self._stopped(self.gateways.pop(port))

    def kill_gateway(self, port: int) -> None:
        """Kill a gateway; the balancer sees nothing but refused connections."""
        self.gateways.pop(port).kill()

    def add_worker(self) -> None:
        """Start a worker, and wait until it takes jobs."""
        before = n_taking(self.url)
        self.workers.append(self._start("worker"))
        self._until(lambda: n_taking(self.url) > before, self.workers[-1])

    def replace_worker(self) -> float:
        """Start another worker, then stop the oldest; returns the seconds that it took to stop."""
        self.add_worker()
        return self._stopped(self.workers.pop(0))

    def stop(self) -> None:
        """Stop all of it."""
        for program in (*self.gateways.values(), *self.workers):
            program.stop()

    def _start(self, *arguments: str) -> Program:
        program = Program([sys.executable, "-m", "app.cli", *arguments], self._environment, self._log)
        program.start()
        return program

    def _stopped(self, program: Program) -> float:
        began = time.monotonic()
        if (code := program.stop()) != 0:
            raise RuntimeError(f"a process ended with {code}")
        return time.monotonic() - began

    def _until(self, condition: Callable[[], bool], program: Program) -> None:
        """Wait until a program is there; fails when it ends before."""
        until(lambda: condition() or not program.runs(), _START_SECONDS)
        assert program.runs(), "a process did not start; the log says why"


@contextmanager
def fleet(folder: Path, gateways: int, workers: int, **settings: str) -> Iterator[Fleet]:
    """A running fleet; all of it ends with the block."""
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))
        valkey = stack.enter_context(Valkey(folder, lasting=True))
        _, bucket = stack.enter_context(bucket_in(folder, log))
        environment = {
            "HALFMOON_STORE_URL": bucket.url,
            **bucket.environment,
            "HALFMOON_REDIS_URL": valkey.url,
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
