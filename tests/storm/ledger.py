"""What the service has told its clients, and what was done to it: all that the invariants are held against."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """A sort of fault."""

    WORKER_KILLED = "worker killed (SIGKILL)"
    CHILD_KILLED = "worker's child killed (SIGKILL)"
    GATEWAY_KILLED = "gateway killed (SIGKILL)"
    VALKEY_KILLED = "Valkey killed (SIGKILL)"
    DISK_FULL = "disk full for seconds"
    REDIS_REFUSED = "Redis cut off: connections closed"
    REDIS_SILENT = "Redis cut off: silence"
    CHILD_STOPPED = "worker's child stopped past its lease (SIGSTOP, SIGCONT)"
    WORKER_STOPPED = "worker stopped past its lease (SIGSTOP, SIGCONT)"
    GATEWAY_STOPPED = "gateway stopped (SIGSTOP, SIGCONT)"
    WORKER_TOLD = "worker told to end (SIGTERM)"


REDIS_AWAY = (Kind.REDIS_REFUSED, Kind.REDIS_SILENT)


class Running(NamedTuple):
    """An attempt that was under way."""

    job: str
    attempt: int


class Fault(NamedTuple):
    """One that was injected; times are those of ``time.time``."""

    kind: Kind
    began: float
    ended: float
    """when it was taken back; of a process told to end: when it had ended"""
    hit: tuple[Running, ...] = ()
    """what the process ran that was hit"""


class Answer(NamedTuple):
    """A request and what came of it; ``status`` is None where nothing came."""

    what: str
    began: float
    ended: float
    status: int | None
    retry_after: str | None = None


class Promise(NamedTuple):
    """A dataset that was answered with 201."""

    n_documents: int
    sha256: str
    name: str | None


class Stopped(NamedTuple):
    """How the service ended when it was told to."""

    code: int = 0
    seconds: float = 0.0
    left: tuple[str, ...] = ()
    """its processes that still lived: what they ran and how they were"""


@dataclass
class Ledger:
    """Written by many threads."""

    answers: list[Answer] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    datasets: dict[str, Promise] = field(default_factory=dict)
    """promised by id, and not yet asked to be deleted"""
    deleted: set[str] = field(default_factory=set)
    """of which the service has said so"""
    refused: set[str] = field(default_factory=set)
    """names under which a dataset was sent and refused"""
    jobs: dict[str, set[str]] = field(default_factory=dict)
    """accepted by id, with the final states that were seen"""
    keys: dict[str, set[str]] = field(default_factory=dict)
    """jobs that were answered to an idempotency key"""
    broken: list[str] = field(default_factory=list)
    """what made a client give up"""
    stopped: Stopped = field(default_factory=Stopped)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def accept(self, key: str, job: str) -> None:
        with self.guard:
            self.jobs.setdefault(job, set())
            self.keys.setdefault(key, set()).add(job)

    def saw(self, job: str, state: str) -> None:
        """A job was shown in a state."""
        if state in ("succeeded", "failed", "cancelled"):
            with self.guard:
                self.jobs[job].add(state)

    @contextmanager
    def injected(self, kind: Kind, hit: tuple[Running, ...] = ()) -> Iterator[None]:
        """The block is the fault."""
        began = time.time()
        try:
            yield
        finally:
            self.faults.append(Fault(kind, began, time.time(), hit))
