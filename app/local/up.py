"""``halfmoon up``: Valkey, workers and gateways on one machine, as children of one supervisor."""

import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from app.http.sockets.listener import READY, ask, listen
from app.local import valkey
from app.local.restart import RestartRequests, rolling_restart
from app.local.supervisor import RESTART_SIGNAL, Program, Supervisor
from storage.errors import CannotStart
from storage.process.system import lasting

POLL_SECONDS = 0.1
"""seconds between two polls of the children"""
GRACE_SECONDS = 15.0
"""seconds of the grace period at shutdown, in addition to those in which a worker may finish its job: more than the ten
seconds that gateways and workers themselves allow"""
GATEWAY_TIMEOUT_SECONDS = 60.0
"""seconds within which the gateway must be ready for the first time"""
_HEALTH_TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True)
class Plan:
    """Plan of a service: its parts and their places."""

    data: Path
    """folder of all data: the store, the cache and Valkey's append-only file"""
    host: str
    port: int
    """port to listen on; 0 takes a free one"""
    workers: int
    environment: Mapping[str, str]
    """environment of the children, to which the settings of the plan are added"""
    drain_seconds: float
    """seconds for which a worker may go on with its job after SIGTERM"""
    store_url: str | None = None
    """URL of the store; None for the data folder"""
    redis_url: str | None = None
    """URL by which the children reach Valkey through a proxy; None for Valkey's own socket"""
    gateways: int = 1
    """number of gateways, which accept connections from one listening socket"""

    @property
    def gateway_names(self) -> list[str]:
        """Names of the gateways as children of the supervisor."""
        return ["gateway"] if self.gateways == 1 else [f"gateway-{number}" for number in range(1, self.gateways + 1)]


class ShutdownRequests:
    """Signal handler that counts SIGINT and SIGTERM.

    The first one requests a shutdown, the second one cuts the grace period short.
    """

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Count a signal."""
        self.count += 1

    def __bool__(self) -> bool:
        return self.count > 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals inside the block."""
        previous = {number: signal.signal(number, self) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


class Startup:
    """Progress of the start. ``complete`` becomes true when the gateway answers and a worker takes jobs."""

    def __init__(self, url: str, supervisor: Supervisor, report: Callable[[str], None]) -> None:
        self.supervisor = supervisor
        self.complete = False
        self._url = url
        self._report = report
        self._gateway_ready = False
        self._deadline = time.monotonic() + GATEWAY_TIMEOUT_SECONDS

    def poll(self) -> None:
        """Poll the children and the health of the service.

        Raises CannotStart when a child exits before the gateway is ready for the first time, or when that takes too
        long. Later, the supervisor restarts what exits.
        """
        health = _health(self._url)
        if self._gateway_ready:
            self.supervisor.poll()
        elif exited := self.supervisor.exited():
            raise CannotStart(f"{exited[0]} ended while the service was starting; its message is above")
        elif (
            health is None and time.monotonic() > self._deadline
        ):  # a step of the warm-up may have lasted longer: the gateway is asked first
            raise CannotStart(f"the gateway was not ready within {GATEWAY_TIMEOUT_SECONDS:g} s")
        if health is None or self.complete:
            return
        if health["workers"]:
            self.complete = True
            print(f"Halfmoon is ready: {self._url}", flush=True)
            self._report(f"every call is described at {self._url}/docs; Ctrl-C stops the service")
        elif not self._gateway_ready:
            self._report(
                f"{self._url} answers; the workers are starting, and jobs wait for them (the first start compiles, "
                "which may take a minute)"
            )
        self._gateway_ready = True


def up(plan: Plan) -> int:
    """Run the service until SIGINT or SIGTERM, and return the exit code. Raises CannotStart with a remedy."""
    shutdown = ShutdownRequests()
    with ExitStack() as cleanup:
        lock = cleanup.enter_context(_locked(plan.data))
        listener = cleanup.enter_context(listen(plan.host, plan.port))
        folder, temporary = valkey.socket_folder(plan.data)
        if temporary:
            cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        supervisor = Supervisor(_report)
        cleanup.enter_context(shutdown.installed())
        restarts = RestartRequests(plan.data)
        signal.signal(RESTART_SIGNAL, restarts)
        cleanup.callback(_stop_all, supervisor, plan.drain_seconds + GRACE_SECONDS, shutdown)
        _start_valkey(plan, folder / "valkey.sock", lock, supervisor, shutdown)
        settings = {
            "redis_url": plan.redis_url or valkey.url(folder / "valkey.sock"),
            "store_url": plan.store_url or (plan.data / "store").as_uri(),
            "cache_dir": str(plan.data / "cache"),
        }
        environment = {**plan.environment, **{f"HALFMOON_{name.upper()}": value for name, value in settings.items()}}
        arguments = [sys.executable, "-m", "app.cli", "api", "--descriptor", str(listener.fileno())]
        arguments += ["--processes", str(folder), *(["--several"] if plan.gateways > 1 else [])]
        # they share the listening socket: a connection that waits there outlives each of them
        for name in plan.gateway_names:
            supervisor.start(Program(name, arguments, environment, inherited=(listener.fileno(),)))
        rest = _start_workers(
            plan, settings, [lock, listener.fileno()], Startup(_url(listener), supervisor, _report), shutdown
        )
        _supervise(plan, folder, supervisor, restarts, shutdown, rest)
        _report("stopping")
    return 0


@contextmanager
def _locked(data: Path) -> Iterator[int]:
    """Create the data folder if necessary, and lock it for this process and its Valkey; gives the descriptor that holds
    the lock.

    Raises CannotStart.
    """
    with ExitStack() as stack:
        try:
            for folder in (data, data / "valkey", data / "store", data / "cache"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            raise CannotStart(
                f"the data folder {data} is in use by another halfmoon (process {holder or 'unknown'}); stop it or "
                "choose another --data"
            ) from None
        except OSError as error:
            raise CannotStart(f"the data folder {data} cannot be used: {error.strerror or error}") from None
        yield descriptor


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _start_valkey(plan: Plan, path: Path, lock: int, supervisor: Supervisor, shutdown: ShutdownRequests) -> None:
    """Start Valkey, and wait until it answers.

    Where it has ended since the disk is full, the supervisor starts it again and again, and gateways answer predictions
    meanwhile. Files that it cannot read are set aside: all jobs are in the store. Raises CannotStart where it has ended
    for another reason.
    """
    files = plan.data / "valkey"
    program = valkey.program(valkey.find_binary(), files, path, plan.environment, lock)
    supervisor.start(program)
    while not shutdown and not valkey.is_ready(path):
        if supervisor.exited():
            problem = valkey.write_problem(files)
            if problem is not None:
                _report(f"{plan.data} cannot be written: {problem}; no job is accepted until there is room")
                return
            if not valkey.set_aside(files):
                raise CannotStart("valkey-server did not start; its message is above")
            _report(f"valkey cannot read its files, which are in {files / valkey.ASIDE} now; jobs are queued anew")
            supervisor.start(program)
        time.sleep(0.02)


def _start_workers(
    plan: Plan, settings: Mapping[str, str], private: list[int], startup: Startup, shutdown: ShutdownRequests
) -> Iterator[None]:
    """Warm up while the gateway starts, fork the workers, and wait until one of them takes jobs.

    Returns the rest of the warm-up.

    A shutdown request ends this at any point.
    """
    with lasting():
        from app.local.prefork import Prefork  # takes a second, in which the gateway starts

        prefork = Prefork(plan.workers, settings, private)
        for _ in prefork.warm_up():
            if shutdown:
                return iter(())
            startup.poll()
    for spec in prefork.workers():
        startup.supervisor.start(spec)
    while not shutdown and not startup.complete:
        startup.poll()
        time.sleep(0.02)
    return prefork.started()


def _supervise(
    plan: Plan,
    folder: Path,
    supervisor: Supervisor,
    restarts: RestartRequests,
    shutdown: ShutdownRequests,
    rest: Iterator[None],
) -> None:
    """Keep the children running, take the ``rest`` of the warm-up in steps, and replace the gateways when that is
    requested, until a shutdown is requested.
    """

    def missing(process: int) -> str | None:
        answer = ask(folder, process, READY)
        return None if answer == b"yes" else "it does not answer" if answer is None else answer.decode()

    restart: Iterator[str] = iter(())
    while not shutdown:
        supervisor.poll()
        try:
            next(rest, None)
        except CannotStart as error:  # as on a full disk, which ends no service
            _report(str(error))
        how = next(restart, None)
        if how:
            _report(f"rolling restart: {how}")
            restarts.ended(how)
        elif how is None and restarts.take():
            _report("rolling restart of the gateways")
            restart = rolling_restart(supervisor, plan.gateway_names, missing, GRACE_SECONDS)
        time.sleep(POLL_SECONDS)


def _stop_all(supervisor: Supervisor, grace_seconds: float, shutdown: ShutdownRequests) -> None:
    """Stop gateway and workers first, because they still write.

    A second signal kills them at once, but never Valkey before its own grace period.
    """
    supervisor.stop(
        [name for name in supervisor.names() if name != "valkey"], grace_seconds, cut_short=lambda: shutdown.count > 1
    )
    supervisor.stop(["valkey"], GRACE_SECONDS)


def _report(text: str) -> None:
    with suppress(OSError):  # a full disk or a closed terminal must not end the service
        print(f"halfmoon: {text}", file=sys.stderr, flush=True)


def _health(url: str) -> Any:
    """The answer of a gateway that is ready; None of one that is not."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/v1/health/ready", timeout=_HEALTH_TIMEOUT_SECONDS) as answer:
            return json.load(answer)
    except (OSError, ValueError):  # URLError, HTTPError and time-outs are OSErrors
        return None
