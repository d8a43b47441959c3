"""Faults, injected for real into the processes of a running service.

Nothing here needs privileges beyond owning them (Linux).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from random import Random

import psutil

from storage.repositories.job_attempts import Attempt
from storage.repositories.jobs import Jobs
from storage.store import KeyMissing, json_records
from tests.e2e.service import Service
from tests.processes import children
from tests.storm.clocks import Clocks
from tests.storm.invariants import Evidence
from tests.storm.ledger import Kind, Running
from tests.storm.proxy import Cut, Proxy
from tests.there import there
from tests.waiting import HANG

_FILE_BYTES = (0, 1 << 10, 1 << 16)
"""Largest file that can be written while the disk is full: nothing, records only, or records and the smallest
arrays."""
_CLOCK_SECONDS = 25 * 3600
_CHILD_SECONDS = 4.0
"""Seconds within which a worker has a child, if there is a job."""


class Injector:
    """Injects faults and records them.

    ``lease`` is that of the service: processes are stopped for longer. ``cut`` bounds how long Redis is away.
    ``server`` is that of the store, if it has one.
    """

    def __init__(
        self,
        service: Service,
        proxy: Proxy,
        clocks: Clocks,
        evidence: Evidence,
        chance: Random,
        lease: float,
        cut: tuple[float, float],
        server: psutil.Process | None = None,
    ) -> None:
        self._service = service
        self._proxy = proxy
        self._clocks = clocks
        self._evidence = evidence
        self._ledger = evidence.ledger
        self._chance = chance
        self._lease = lease
        self._cut_seconds = cut
        self._server = server

    def inject(self, kind: Kind) -> bool:
        """Inject the fault and, if it is one that ends, end it. False if there was no process to harm."""
        match kind:
            case Kind.REDIS_REFUSED | Kind.REDIS_SILENT:
                self._cut(kind)
            case Kind.DISK_FULL:
                self._fill()
            case Kind.ALL_STOPPED:
                self._stop_all()
            case _:
                return self._strike(kind)
        return True

    def _strike(self, kind: Kind) -> bool:
        # what the service itself consists of comes back, however slow the machine is
        deadline = time.monotonic() + (_CHILD_SECONDS if kind in (Kind.CHILD_KILLED, Kind.CHILD_STOPPED) else HANG)
        while (victim := self._victim(kind)) is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            with self._ledger.injected(kind, self._run_by(victim)):
                match kind:
                    case Kind.CHILD_STOPPED | Kind.WORKER_STOPPED | Kind.GATEWAY_STOPPED:
                        victim.suspend()
                        time.sleep(self._past_lease())
                        victim.resume()
                    case Kind.CLOCK_SET:
                        self._clocks.set(victim.pid, self._chance.randint(-_CLOCK_SECONDS, _CLOCK_SECONDS))
                        time.sleep(self._past_lease())
                    case Kind.WORKER_TOLD:
                        victim.terminate()
                        victim.wait(HANG)
                    case _:
                        victim.kill()
            return True
        return False

    def _victim(self, kind: Kind) -> psutil.Process | None:
        match kind:
            case Kind.CHILD_KILLED | Kind.CHILD_STOPPED:
                found = [child for worker in self._service.parts("worker") for child in children(worker)]
            case Kind.WORKER_KILLED | Kind.WORKER_STOPPED | Kind.WORKER_TOLD:
                # rather one that works
                found = self._service.parts("worker")
                found = [worker for worker in found if children(worker)] or found
            case Kind.VALKEY_KILLED:
                found = self._service.parts("valkey-server")
            case Kind.CLOCK_SET:
                supervisor = psutil.Process(there(self._service.process).pid)
                parts = (self._service.parts(role) for role in ("api", "worker", "valkey-server"))
                found = [supervisor, *chain.from_iterable(parts)]
            case _:
                found = self._service.parts("api")
        return self._chance.choice(found) if found else None

    def _run_by(self, victim: psutil.Process) -> tuple[Running, ...]:
        """The attempt that a worker, or the worker of this child, runs: the newest of its attempts, since it runs one
        at a time.
        """
        pids = {str(victim.pid), str(victim.ppid())}
        ids = Jobs(self._evidence.store).unfinished_ids()
        found = sorted(begun for id in ids for begun in _attempts(self._evidence, id, pids))
        return tuple(running for _, running in found[-1:])

    def _past_lease(self) -> float:
        return self._lease * self._chance.uniform(1.3, 2.2)

    def _stop_all(self) -> None:
        supervisor = psutil.Process(there(self._service.process).pid)
        with self._ledger.injected(Kind.ALL_STOPPED):
            # parents before their children, so that none is begun meanwhile
            stopped = [supervisor, *supervisor.children(recursive=True)]
            for process in stopped:
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
            time.sleep(self._past_lease())
            for process in stopped:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def _cut(self, kind: Kind) -> None:
        how = Cut.REFUSED if kind is Kind.REDIS_REFUSED else Cut.SILENT
        with self._proxy.cut(how), self._ledger.injected(kind):
            began = time.time()
            time.sleep(self._chance.uniform(*self._cut_seconds))
            self._probed(began)

    def _probed(self, since: float) -> None:
        """Wait, but not for ever, until the clients that predict and read have an answer to a request since now."""
        deadline = time.monotonic() + HANG
        while not {"predict", "read"} <= {answer.what for answer in list(self._ledger.answers) if answer.began > since}:
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)

    def _fill(self) -> None:
        """A limit of the system on the size of files of gateway and workers, and of the server of the store: to them
        the same as a full disk.
        """
        with self._ledger.injected(Kind.DISK_FULL), self._no_file_beyond(self._chance.choice(_FILE_BYTES)):
            time.sleep(self._chance.uniform(1.0, 3.0))

    @contextmanager
    def _no_file_beyond(self, size: int) -> Iterator[None]:
        with ExitStack() as stack:
            stack.callback(lambda: _limit(self._writers(), -1))
            _limit(self._writers(), size)
            yield

    def _writers(self) -> Sequence[psutil.Process]:
        """Parents before their children, so that no child is forked with a limit that was just lifted."""
        parents = [*self._service.parts("api"), *self._service.parts("worker")]
        servers = [self._server] if self._server is not None else []
        return [*servers, *parents, *(child for parent in parents for child in children(parent))]


def _attempts(evidence: Evidence, id: str, pids: set[str]) -> Iterator[tuple[float, Running]]:
    store, jobs = evidence.store, Jobs(evidence.store)
    number = jobs.last_attempt(id)
    with suppress(KeyMissing):
        if number and not jobs.has_outcome(id) and not store.exists(f"jobs/{id}/attempts/{number}.returned.json"):
            attempt = json_records.read(store, f"jobs/{id}/attempts/{number}.json", Attempt)
            if attempt.worker.split(".")[-2] in pids:
                yield there(evidence.began(id, number)), Running(id, number)


def _limit(processes: Sequence[psutil.Process], size: int) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.rlimit(psutil.RLIMIT_FSIZE, (size, -1))
