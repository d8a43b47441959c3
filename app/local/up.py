"""``halfmoon up``: the whole service on one machine from one command: Valkey, workers and the gateway as supervised children."""

import fcntl
import os
import shutil
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from app.http.listener import listen
from app.local import valkey
from app.local.children import Command
from app.local.supervisor import Supervisor
from workers.errors import CannotStart

ROUND = 0.1
"""seconds between two looks at the children"""
SLOWEST_START = 60.0
"""seconds until the service must be ready for the first time (a first start compiles the kernels)"""
PATIENCE = 15.0
"""seconds that the parts have to end in, beside those in which a worker may finish its job: more than the ten after which a gateway leaves its
clients and a worker its job"""


@dataclass(frozen=True)
class Plan:
    """What to run and where."""

    data: Path
    """folder that holds everything: store, cache, Valkey's append-only file"""
    host: str
    port: int
    """0 takes a free one"""
    workers: int
    environment: Mapping[str, str]
    """what the children inherit; the settings that the plan decides are added to it"""
    drain_seconds: float
    """how long a worker that is told to stop may go on with its job"""
    store_url: str | None = None
    """where the store is, if not in the data folder"""
    redis_url: str | None = None
    """where the children reach Valkey, if not at its own socket: something that stands between them"""


class Stop:
    """Whether the service was told to end; set by SIGINT and SIGTERM, and hurried by a second one."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The signal handler."""
        self.asked += 1

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Signals are heard inside the block."""
        before = {number: signal.signal(number, self) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def up(plan: Plan) -> int:
    """Run the service until SIGINT or SIGTERM; returns the exit code. Raises CannotStart, saying what to mend."""
    stop = Stop()
    with ExitStack() as cleanup:
        lock = cleanup.enter_context(_locked(plan.data))
        listener = cleanup.enter_context(listen(plan.host, plan.port))
        folder, temporary = valkey.socket_folder(plan.data)
        if temporary:
            cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        supervisor = Supervisor(_say)
        cleanup.enter_context(stop.listening())
        cleanup.callback(_stop_all, supervisor, plan.drain_seconds + PATIENCE, stop)
        _start_valkey(plan, folder / "valkey.sock", lock, supervisor, stop)
        settings = _told_children(plan, folder / "valkey.sock")
        _start_gateway(plan, settings, listener, supervisor)
        from app.local.prefork import warm_up, workers  # takes a second, in which the gateway starts

        url = _url(listener)
        _until_ready(url, supervisor, stop)
        if not stop.asked:
            print(f"Halfmoon is ready: {url}", flush=True)
        for _ in warm_up():
            if stop.asked:
                break
            supervisor.tend()
        for work in workers(plan.workers, settings, [lock, listener.fileno()]):
            supervisor.start(work)
        while not stop.asked:
            supervisor.tend()
            time.sleep(ROUND)
        _say("stopping")
    return 0


@contextmanager
def _locked(data: Path) -> Iterator[int]:
    """The data folder, made if need be and held by this process and its Valkey alone; gives the descriptor that holds the lock.

    Raises CannotStart.
    """
    try:
        descriptor = _lock(data)
    except OSError as error:
        raise CannotStart(f"the data folder {data} cannot be used: {error.strerror or error}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(data: Path) -> int:
    for folder in (data, data / "valkey", data / "store", data / "cache"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise CannotStart(
            f"the data folder {data} is in use by another halfmoon (process {holder or 'unknown'}); stop it or choose another --data"
        ) from None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _start_valkey(plan: Plan, path: Path, lock: int, supervisor: Supervisor, stop: Stop) -> None:
    supervisor.start(valkey.command(valkey.find_binary(), plan.data / "valkey", path, plan.environment, lock))
    while not stop.asked and not valkey.answers(path):
        if supervisor.dead():
            raise CannotStart("valkey-server did not start; it says why above")
        time.sleep(0.02)


def _told_children(plan: Plan, path: Path) -> dict[str, str]:
    """The settings that the plan decides."""
    return {
        "redis_url": plan.redis_url or valkey.url(path),
        "store_url": plan.store_url or (plan.data / "store").as_uri(),
        "cache_dir": str(plan.data / "cache"),
    }


def _start_gateway(plan: Plan, settings: Mapping[str, str], listener: socket.socket, supervisor: Supervisor) -> None:
    environment = {**plan.environment, **{f"HALFMOON_{name.upper()}": value for name, value in settings.items()}}
    arguments = [sys.executable, "-m", "app.cli", "api", "--descriptor", str(listener.fileno())]
    supervisor.start(Command("gateway", arguments, environment, inherited=(listener.fileno(),)))


def _until_ready(url: str, supervisor: Supervisor, stop: Stop) -> None:
    """Wait for the first readiness; raises CannotStart when a part ends before it or it takes too long."""
    deadline = time.monotonic() + SLOWEST_START
    while not stop.asked and not _ready(url):
        if dead := supervisor.dead():
            raise CannotStart(f"{dead[0]} ended while the service was starting; it says why above")
        if time.monotonic() > deadline:
            raise CannotStart(f"the service was not ready within {SLOWEST_START:g} s")
        time.sleep(ROUND)


def _ready(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/v1/health/ready", timeout=2.0) as answer:
            return bool(answer.status == 200)
    except OSError:  # URLError and time-outs among them
        return False


def _stop_all(supervisor: Supervisor, patience: float, stop: Stop) -> None:
    """Gateway and workers first, as they still have things to write; Valkey last, and never by force before its time. A second signal hurries."""
    supervisor.stop([name for name in supervisor.names() if name != "valkey"], patience, hurry=lambda: stop.asked > 1)
    supervisor.stop(["valkey"], PATIENCE)


def _say(text: str) -> None:
    with suppress(OSError):  # a full disk or a closed terminal where it is written must not end the service
        print(f"halfmoon: {text}", file=sys.stderr, flush=True)
