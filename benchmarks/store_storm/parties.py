"""The processes of the storm: gateways, workers, an S3 server and Valkey; each can be killed and started again."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks.load import is_ready, n_taking, status_of
from benchmarks.running import credentials
from storage.store import Store, open_store
from tests.processes import Program, free_port
from tests.stores import Valkey, s3_options
from tests.storm.store_proxy import StoreProxy
from tests.waiting import until

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
"""Library of Debian's package libfaketime, by which the clock of a process is off."""
_BUCKET = "storm"
START_SECONDS = 240.0
_HOOKS = Path(__file__).parent / "hooks"
_HALFMOON = (sys.executable, "-m", "app.cli")


class Parties(NamedTuple):
    """The parties of a storm."""

    gateways: list[Program]
    workers: list[Program]
    supervisor: Program
    """``halfmoon up`` with a gateway and a worker of its own, on the same store and queue"""
    valkey: Program
    server: Program | None
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
        valkey, illness = stack.enter_context(Valkey(folder, lasting=True)), folder / "illness"
        environment = {
            **settings,
            "HALFMOON_REDIS_URL": valkey.url,
            "HALFMOON_CACHE_DIR": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        server = proxy = None
        if kind == "s3":
            port, root = free_port(), folder / "buckets"
            command = [sys.executable, "-m", "benchmarks.store_storm.bucket_server", "--port", str(port), str(root)]
            endpoint = f"http://127.0.0.1:{port}"
            server = stack.enter_context(Program(command, output=log, url=endpoint))
            until(lambda: status_of(endpoint, "/") > 0, START_SECONDS)
            httpx.put(f"{endpoint}/{_BUCKET}", trust_env=False).raise_for_status()
            proxy = stack.enter_context(StoreProxy(endpoint))
            environment |= credentials(proxy.endpoint) | {"HALFMOON_STORE_URL": f"s3://{_BUCKET}/storm"}
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
        ports = [free_port() for _ in range(n_gateways)]
        gateways = [
            Program([*_HALFMOON, "api", "--port", str(port)], environment, log, f"http://127.0.0.1:{port}")
            for port in ports
        ]
        workers = [Program([*_HALFMOON, "worker"], environment, log) for _ in range(n_workers)]
        command = [sys.executable, "-m", "tests.storm.launch", valkey.url, str(folder / "up"), "1"]
        supervisor = Program([*command, environment["HALFMOON_STORE_URL"]], environment, log)
        for program in (*gateways, *workers, supervisor):
            stack.enter_context(program)
        for gateway in gateways:
            until(partial(is_ready, gateway.url), START_SECONDS)
        until(lambda: n_taking(gateways[0].url) > n_workers, START_SECONDS)
        yield Parties(gateways, workers, supervisor, valkey, server, proxy, illness, store, root)


def off(seconds: int) -> dict[str, str]:
    """Environment of a process with a clock that is off by so many seconds; intervals are measured right."""
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME": f"{seconds:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1",
    }
