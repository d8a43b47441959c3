"""Processes to be measured: the whole service as ``halfmoon up`` runs it, a gateway alone, the plain app."""

import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import psutil

from benchmarks.load import status_of
from tests.e2e import service as e2e
from tests.processes import Program, children, free_port
from tests.waiting import until

_PATIENCE = 120.0
# compiled modules are kept from the first start on, as an installation by pip has them, whatever the environment says
# of writing them
_BYTECODE = {
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPYCACHEPREFIX": str(Path(__file__).parent.parent / "build" / "bytecode"),
}


class Service(e2e.Service):
    """One gateway and one worker on a store of their own."""

    @property
    def gateway(self) -> psutil.Process:
        return self.parts("api")[0]

    @property
    def worker(self) -> psutil.Process:
        return self.parts("worker")[0]

    @property
    def attempt(self) -> psutil.Process | None:
        """The process in which the worker runs its job, if it runs one."""
        return next(iter(children(self.worker)), None)

    def dataset(self, body: bytes) -> str:
        """Id of the dataset of an npz body."""
        return str(self.upload(body, "measured")["id"])

    def state(self, job: str) -> str:
        return str(self.get(f"/v1/jobs/{job}")["state"])

    def until(self, job: str, wanted: str, pause: float = 0.05) -> None:
        """Wait for a state of a job, asking again and again; raises RuntimeError if the job ends in another."""
        while (state := self.state(job)) != wanted:
            if state in ("failed", "cancelled", "succeeded"):
                raise RuntimeError(f"job {job} is {state}, not {wanted}")
            time.sleep(pause)


def service(data: Path, settings: Mapping[str, str] = MappingProxyType({})) -> Service:
    """Ready with its worker when the block is entered; its log is among its data."""
    data.mkdir(exist_ok=True)
    return Service(data, data / "log", environment={**_BYTECODE, **settings})


@contextmanager
def gateway(beside: Service) -> Iterator[tuple[str, psutil.Process]]:
    """A second gateway on the store and the Valkey of a service, just started and not ready yet."""
    redis = f"unix://{beside.data}/valkey/valkey.sock"
    settings = {
        "HALFMOON_REDIS_URL": redis,
        "HALFMOON_STORE_URL": (beside.data / "store").as_uri(),
        "HALFMOON_CACHE_DIR": str(beside.data / "cache"),
    }
    port = free_port()
    with _program([sys.executable, "-m", "app.cli", "api", "--port", str(port)], settings) as program:
        yield f"http://127.0.0.1:{port}", program.process


@contextmanager
def plain_app(model: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Just started and not ready yet."""
    port = free_port()
    with _program([sys.executable, "-m", "benchmarks.plain_app", str(model), str(port)]) as program:
        yield f"http://127.0.0.1:{port}", program.process


def until_ready(url: str, path: str) -> None:
    """Wait for an answer of 200, which is looked for every 10 ms."""
    until(lambda: status_of(url, path) == 200, _PATIENCE)


def memory(process: psutil.Process) -> int:
    """Bytes that a process holds in memory."""
    return int(process.memory_info().rss)


def status_bytes(name: str, pid: int | str = "self") -> int:
    """A figure of a process as the system names it, in bytes (Linux)."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    if found is None:  # it has ended, and nobody has asked yet how
        raise psutil.NoSuchProcess(int(pid))
    return int(found[1]) * 1024


def anonymous(process: psutil.Process) -> int:
    """Bytes that it holds beside the pages of files, which the system may take back at any time."""
    return status_bytes("RssAnon", process.pid)


def peak_memory(process: psutil.Process) -> int:
    """The most bytes that it held since ``forget_peak``."""
    return status_bytes("VmHWM", process.pid)


def forget_peak(process: psutil.Process) -> None:
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def _program(
    command: list[str],
    settings: Mapping[str, str] = MappingProxyType({}),
    output: int | None = None,
    errors: int | None = None,
) -> Program:
    return Program(command, {**_BYTECODE, **settings}, output, errors=errors)
