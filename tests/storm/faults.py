"""Faults, injected for real into the processes of a running service.

Nothing here needs privileges beyond owning them (Linux).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from random import Random

import psutil

from storage.records import Attempt
from storage.repositories.jobs import Jobs
from storage.store import KeyMissing, Store, json_records
from tests.e2e.service import Service
from tests.processes import children
from tests.storm.ledger import Kind, Ledger, Running
from tests.storm.proxy import Cut, Proxy
from tests.waiting import HANG

_FILE_BYTES = (0, 1 << 10, 1 << 16)
"""Largest file that can be written while the disk is full: nothing, records only, or records and the smallest
arrays."""
_CHILD_SECONDS = 4.0
"""Seconds within which a worker has a child, if there is a job."""


class Injector:
    """Injects faults and records them.

    ``lease`` is that of the service: processes are stopped for longer. ``cut`` bounds how long Redis is away.
    """

    def __init__(
        self,
        service: Service,
        proxy: Proxy,
        store: Store,
        ledger: Ledger,
        chance: Random,
        lease: float,
        cut: tuple[float, float],
    ) -> None:
        self._service = service
        self._proxy = proxy
        self._store = store
        self._ledger = ledger
        self._chance = chance
        self._lease = lease
        self._cut_seconds = cut

    def inject(self, kind: Kind) -> bool:
        """Inject the fault and, if it is one that ends, end it. False if there was no process to harm."""
        match kind:
            case Kind.REDIS_REFUSED | Kind.REDIS_SILENT:
                self._cut(kind)
            case Kind.DISK_FULL:
                self._fill()
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
        with suppress(psutil.NoSuchProcess):
            with self._ledger.injected(kind, self._run_by(victim)):
                match kind:
                    case Kind.CHILD_STOPPED | Kind.WORKER_STOPPED | Kind.GATEWAY_STOPPED:
                        victim.suspend()
                        time.sleep(self._lease * self._chance.uniform(1.3, 2.2))
                        victim.resume()
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
            case _:
                found = self._service.parts("api")
        return self._chance.choice(found) if found else None

    def _run_by(self, victim: psutil.Process) -> tuple[Running, ...]:
        """The attempt that a worker, or the worker of this child, runs: the newest of its attempts, since it runs one
        at a time.
        """
        pids = {str(victim.pid), str(victim.ppid())}
        jobs = Jobs(self._store)
        found = sorted(begun for id in jobs.unfinished_ids() for begun in _attempts(self._store, jobs, id, pids))
        return tuple(running for _, running in found[-1:])

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
        """A limit of the system on the size of files of gateway and workers: to them the same as a full disk."""
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
        return [*parents, *(child for parent in parents for child in children(parent))]


def _attempts(store: Store, jobs: Jobs, id: str, pids: set[str]) -> Iterator[tuple[datetime, Running]]:
    number = jobs.last_attempt(id)
    with suppress(KeyMissing):
        if number and not jobs.has_outcome(id) and not store.exists(f"jobs/{id}/attempts/{number}.returned.json"):
            attempt = json_records.read(store, f"jobs/{id}/attempts/{number}.json", Attempt)
            if attempt.worker.split(".")[-2] in pids:
                yield attempt.started_at, Running(id, number)


def _limit(processes: Sequence[psutil.Process], size: int) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.rlimit(psutil.RLIMIT_FSIZE, (size, -1))
