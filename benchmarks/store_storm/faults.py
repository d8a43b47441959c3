"""The faults of the storm: each is injected, lasts, and is mended."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from random import Random
from typing import NamedTuple

import psutil

from benchmarks.load import status_of
from benchmarks.store_storm.parties import START_SECONDS, Parties
from storage.store import KeyMissing
from tests.e2e.service import role_of
from tests.processes import Program
from tests.storm.clocks import COMPILER
from tests.storm.store_proxy import Ill, Illness
from tests.waiting import until

_HOUR = 3600
_DEATH_SECONDS = 30.0
"""seconds within which the children of a killed supervisor have died, however busy the machine is"""


class Fault(StrEnum):
    """Kind of a fault."""

    SLOW = "store slow: 10 ms to 5 s a call"
    HANGS = "store hangs for 3 to 40 s"
    HALF = "store answers half"
    WRONG = "store returns a wrong byte"
    FAILS = "store answers with errors"
    DAMAGED = "a record damaged by hand"
    SERVER = "S3 server killed and started again"
    GATEWAY = "gateway killed"
    WORKER = "worker killed"
    CHILD = "worker's child killed"
    SUPERVISOR = "supervisor killed (halfmoon up)"
    VALKEY = "Valkey killed"
    CLOCK = "clock of a running process an hour off from now on"


BUCKET_ALONE = (Fault.HALF, Fault.WRONG, Fault.SERVER)
FOLDER_ALONE = (Fault.FAILS,)


def faults_of(kind: str) -> list[Fault]:
    """The faults of a store of this kind: a folder has no server, and reads the content of a disk; errors of a bucket
    are its server's.
    """
    without = FOLDER_ALONE if kind == "s3" else BUCKET_ALONE
    return [fault for fault in Fault if fault not in without and (fault is not Fault.CLOCK or COMPILER is not None)]


class Hit(NamedTuple):
    """A fault that was injected."""

    fault: Fault
    began: float
    ended: float
    worker: int
    """process id of the worker that was hit, or whose child was; 0 if none was"""


class Injector:
    """Injects faults, and records them."""

    def __init__(self, parties: Parties, chance: Random) -> None:
        self._parties, self._chance = parties, chance
        self.hits: list[Hit] = []

    def inject(self, fault: Fault, seconds: float | None = None) -> None:
        """Inject a fault, wait while it lasts, and mend it."""
        began = time.time()
        worker = 0
        match fault:
            case Fault.SLOW | Fault.HANGS | Fault.HALF | Fault.WRONG | Fault.FAILS:
                with self._ill(fault):
                    time.sleep(seconds or self._seconds(fault))
            case Fault.DAMAGED:
                self._damage()
            case Fault.CHILD:
                worker = self._kill_child()
            case Fault.SUPERVISOR:
                worker = self._kill_supervisor()
            case Fault.CLOCK:
                self._set_clock()
            case Fault.WORKER:
                worker = self._again(self._chance.choice(self._parties.workers))
            case _:
                at = {Fault.GATEWAY: self._chance.choice(self._parties.gateways), Fault.VALKEY: self._parties.valkey}
                self._again(at.get(fault) or self._parties.server or self._parties.valkey)
        self.hits.append(Hit(fault, began, time.time(), worker))

    def _seconds(self, fault: Fault) -> float:
        return self._between(3.0, 40.0) if fault is Fault.HANGS else self._chance.uniform(2.0, 5.0)

    def _between(self, least: float, most: float) -> float:
        """A number between these; every magnitude is as likely."""
        return math.exp(self._chance.uniform(math.log(least), math.log(most)))

    @contextmanager
    def _ill(self, fault: Fault) -> Iterator[None]:
        seconds = self._between(0.01, 5.0)
        if self._parties.proxy is None:
            kind = {Fault.SLOW: "slow", Fault.HANGS: "hangs", Fault.FAILS: "fails"}[fault]
            temporary = self._parties.illness.with_suffix(".new")
            temporary.write_text(f"{kind} {seconds}")
            temporary.rename(self._parties.illness)
            yield
            self._parties.illness.unlink()
            return
        illness = {
            Fault.SLOW: Illness(Ill.SLOW, seconds=seconds),
            Fault.HANGS: Illness(Ill.SILENT),
            Fault.HALF: Illness(Ill.HALF, times=10, n_bytes=self._chance.choice([0, 100, 400])),
            Fault.WRONG: Illness(Ill.WRONG, times=3),
        }[fault]
        with self._parties.proxy.ill(illness):
            yield

    def _again(self, party: Program) -> int:
        """Kill a party, and start it again; returns the process id that it had."""
        pid, family = party.pid, party.children() if party is self._parties.supervisor else []
        party.kill()
        if psutil.wait_procs(family, _DEATH_SECONDS)[1]:
            raise RuntimeError("a process has outlived its supervisor")
        time.sleep(self._chance.uniform(0.2, 2.0))
        party.start()
        while party is self._parties.server and not status_of(party.url, "/"):
            time.sleep(0.05)
        return pid

    def _set_clock(self) -> None:
        party = self._chance.choice([*self._parties.gateways, *self._parties.workers])
        self._parties.clocks.set(party.pid, self._chance.choice([-_HOUR, _HOUR]))

    def _kill_child(self) -> int:
        deadline = time.monotonic() + 3.0
        while time.monotonic() < deadline:
            for worker in self._chance.sample(self._parties.workers, len(self._parties.workers)):
                # what asks the store for the worker is a child, too
                for child in worker.children():
                    with suppress(Exception):
                        child.kill()
                        return worker.pid
            time.sleep(0.02)
        return 0

    def _kill_supervisor(self) -> int:
        """Kill the supervisor when it has a worker, which dies with it, and start it again; returns the process id of
        this worker.
        """
        supervisor = self._parties.supervisor
        found = until(
            lambda: [child.pid for child in supervisor.children() if role_of(child) == "worker"], START_SECONDS
        )
        self._again(supervisor)
        return found[0]

    def _damage(self) -> None:
        """An editor's copy, a foreign folder, and the record of a job that has ended cut short, which is restored after
        seconds.
        """
        store, name = self._parties.store, "lost+found"
        ended = [id for id in store.children("jobs") if store.exists(f"jobs/{id}/published.json")]
        (self._parties.root / "jobs" / name).mkdir(parents=True, exist_ok=True)
        (self._parties.root / "open").mkdir(parents=True, exist_ok=True)
        (self._parties.root / "open" / "1.json~").write_bytes(b"{")
        with suppress(KeyMissing, IndexError):
            key = f"jobs/{self._chance.choice(ended)}/{self._chance.choice(['request', 'outcome', 'published'])}.json"
            whole = store.read(key)
            store.replace(key, whole[: len(whole) // 2])
            time.sleep(self._chance.uniform(1.0, 3.0))
            store.replace(key, whole)
        (self._parties.root / "open" / "1.json~").unlink()
        (self._parties.root / "jobs" / name).rmdir()
