"""The processes of the storm: gateways, workers, an S3 server and Valkey; each can be killed and started again."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import httpx

from benchmarks.load import is_ready, n_taking, status_of
from storage.store import Store, open_store
from tests.processes import Program, free_port
from tests.stores import Valkey, s3_options
from tests.storm.clocks import Clocks
from tests.storm.store_proxy import StoreProxy
from tests.storm.storm import Location
from tests.waiting import until

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
    clocks: Clocks
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
        clocks = Clocks(folder)
        environment = {
            **settings,
            **clocks.environment,
            "HALFMOON_REDIS_URL": valkey.url,
            "HALFMOON_CACHE_DIR": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        server = proxy = None
        if kind == "s3":
            server, bucket = stack.enter_context(bucket_in(folder, log))
            store, root = bucket.store, bucket.root
            proxy = stack.enter_context(StoreProxy(server.url))
            environment |= _credentials(proxy.endpoint) | {"HALFMOON_STORE_URL": bucket.url}
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
        yield Parties(gateways, workers, supervisor, valkey, server, proxy, illness, clocks, store, root)


@contextmanager
def bucket_in(folder: Path, log: IO[bytes]) -> Iterator[tuple[Program, Location]]:
    """A bucket below a folder, and its server."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.store_storm.bucket_server", "--port", str(port)]
    endpoint, url = f"http://127.0.0.1:{port}", f"s3://{_BUCKET}/storm"
    with Program([*command, str(folder / "buckets")], output=log, url=endpoint) as server:
        until(lambda: status_of(endpoint, "/") > 0, START_SECONDS)
        httpx.put(f"{endpoint}/{_BUCKET}", trust_env=False).raise_for_status()
        store = open_store(url, folder / "own", options=s3_options(endpoint))
        root = folder / "buckets" / _BUCKET / "storm"
        yield server, Location(url, root, store, _credentials(endpoint), server.process)


def _credentials(endpoint: str) -> dict[str, str]:
    """Environment of a process that uses an S3 server of this machine."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ALLOW_HTTP": "true",
    }
