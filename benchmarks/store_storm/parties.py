"""The processes of the storm: gateways, workers, an S3 server and Valkey, each of which can be killed and started
again.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import httpx
import psutil

from app.local.valkey import find_binary, is_ready
from benchmarks.load import status_of
from benchmarks.running import free_port
from storage.store import Store, open_store
from tests.stores import s3_options
from tests.storm.store_proxy import StoreProxy

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
"""Library of Debian's package libfaketime, by which the clock of a process is off."""
_BUCKET = "storm"
START_SECONDS = 240.0
_STOP_SECONDS = 60.0
_HOOKS = Path(__file__).parent / "hooks"


class Party:
    """A process that can be started again."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: IO[bytes], url: str = "") -> None:
        self._command, self._environment, self._log = list(command), environment, log
        self.url = url
        """address, of what listens"""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; 0 before the first start."""
        return self._process.pid if self._process else 0

    def start(self, **more: str) -> None:
        """Start it, with more in its environment."""
        self._process = subprocess.Popen(
            self._command, env={**self._environment, **more}, stdout=self._log, stderr=self._log
        )

    def children(self) -> list[psutil.Process]:
        """Its children."""
        try:
            return psutil.Process(self.pid).children()
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Tell it to end, and wait."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_STOP_SECONDS)


class Parties(NamedTuple):
    """What takes part."""

    gateways: list[Party]
    workers: list[Party]
    supervisor: Party
    """``halfmoon up`` with a gateway and a worker of its own, on the same store and queue"""
    valkey: Party
    server: Party | None
    """the S3 server, if the store is a bucket"""
    proxy: StoreProxy | None
    """what stands before it"""
    illness: Path
    """file that makes a folder ill"""
    store: Store
    """the store itself, past whatever makes it ill"""
    root: Path
    """folder in which the store lies"""


@contextmanager
def parties(folder: Path, kind: str, n_gateways: int, n_workers: int, settings: Mapping[str, str]) -> Iterator[Parties]:
    """The running processes, on a store of this kind: ``folder`` or ``s3``. All end with the block."""
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("ab"))
        socket, illness = folder / "valkey.sock", folder / "illness"
        command = [
            find_binary(),
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--save",
            "",
            "--appendonly",
            "yes",
            "--dir",
            str(folder),
        ]
        valkey = _started(stack, Party(command, os.environ, log))
        _until(lambda: is_ready(socket))
        environment = {
            **os.environ,
            **settings,
            "HALFMOON_REDIS_URL": f"unix://{socket}",
            "HALFMOON_CACHE_DIR": str(folder / "cache"),
        }
        environment["PYTHONDONTWRITEBYTECODE"] = ""
        server = proxy = None
        if kind == "s3":
            port, root = free_port(), folder / "buckets"
            command = [sys.executable, "-m", "benchmarks.store_storm.bucket_server", "--port", str(port), str(root)]
            endpoint = f"http://127.0.0.1:{port}"
            server = _started(stack, Party(command, os.environ, log, endpoint))
            _until(lambda: status_of(endpoint, "/") > 0)
            httpx.put(f"{endpoint}/{_BUCKET}", trust_env=False).raise_for_status()
            proxy = stack.enter_context(StoreProxy(endpoint))
            environment |= _credentials(proxy.endpoint) | {"HALFMOON_STORE_URL": f"s3://{_BUCKET}/storm"}
            options = s3_options(endpoint)
            store, root = open_store(f"s3://{_BUCKET}/storm", folder / "own", options=options), root / _BUCKET / "storm"
        else:
            root = folder / "store"
            store = open_store(root.as_uri())
            environment |= {
                "HALFMOON_STORE_URL": root.as_uri(),
                "STORM_ILLNESS": str(illness),
                "PYTHONPATH": os.pathsep.join([str(_HOOKS), os.getcwd()]),
            }
        gateways = [_gateway(stack, environment, log) for _ in range(n_gateways)]
        workers = [
            _started(stack, Party([sys.executable, "-m", "app.cli", "worker"], environment, log))
            for _ in range(n_workers)
        ]
        command = [
            sys.executable,
            "-m",
            "tests.storm.launch",
            environment["HALFMOON_REDIS_URL"],
            str(folder / "up"),
            "1",
        ]
        supervisor = _started(stack, Party([*command, environment["HALFMOON_STORE_URL"]], environment, log))
        for gateway in gateways:
            _until(partial(_is_ready, gateway.url))
        _until(
            lambda: (
                httpx.get(f"{gateways[0].url}/v1/health/ready", trust_env=False, timeout=30).json().get("workers", 0)
                > n_workers
            )
        )
        yield Parties(gateways, workers, supervisor, valkey, server, proxy, illness, store, root)


def off(seconds: int) -> dict[str, str]:
    """Environment of a process whose clock is off by so many seconds; what measures intervals is right."""
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME": f"{seconds:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1",
    }


def _gateway(stack: ExitStack, environment: Mapping[str, str], log: IO[bytes]) -> Party:
    port = free_port()
    return _started(
        stack,
        Party(
            [sys.executable, "-m", "app.cli", "api", "--port", str(port)], environment, log, f"http://127.0.0.1:{port}"
        ),
    )


def _started(stack: ExitStack, party: Party) -> Party:
    party.start()
    stack.callback(party.stop)
    return party


def _credentials(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ALLOW_HTTP": "true",
    }


def _is_ready(url: str) -> bool:
    return status_of(url, "/v1/health/ready") == 200


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("a process did not start; the log says why")
        time.sleep(0.05)
