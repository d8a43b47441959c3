"""Ledger of a storm: the answers of the service and the faults, against which the invariants are checked."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """Kind of a fault."""

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
    ALL_STOPPED = "all processes stopped past their leases (SIGSTOP, SIGCONT)"
    CLOCK_SET = "clock of a running process set by up to 25 hours, ahead or back"


REDIS_AWAY = (Kind.REDIS_REFUSED, Kind.REDIS_SILENT)


class Running(NamedTuple):
    """An attempt that was running."""

    job: str
    attempt: int


class Fault(NamedTuple):
    """A fault that was injected; times by ``time.time``."""

    kind: Kind
    began: float
    ended: float
    """time at which it ended; for a process that was told to end, the time at which it had"""
    hit: tuple[Running, ...] = ()
    """attempts that ran in the process that was hit"""


class Answer(NamedTuple):
    """A request and its answer; ``status`` is None where none came."""

    what: str
    began: float
    ended: float
    status: int | None
    retry_after: str | None = None


class Promise(NamedTuple):
    """A dataset that was created with the answer 201."""

    n_documents: int
    sha256: str
    name: str | None


class Stopped(NamedTuple):
    """How the service ended when it was told to."""

    code: int = 0
    seconds: float = 0.0
    left: tuple[str, ...] = ()
    """processes that still ran: command and state"""


@dataclass
class Ledger:
    """The ledger; many threads write it."""

    answers: list[Answer] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    datasets: dict[str, Promise] = field(default_factory=dict)
    """datasets by id that were promised and whose deletion was not requested"""
    deleted: set[str] = field(default_factory=set)
    """datasets whose deletion was answered"""
    refused: set[str] = field(default_factory=set)
    """names of datasets that were refused"""
    jobs: dict[str, set[str]] = field(default_factory=dict)
    """accepted jobs by id, with the final states that were seen"""
    keys: dict[str, set[str]] = field(default_factory=dict)
    """jobs that were answered, by idempotency key"""
    annotations: dict[str, set[str]] = field(default_factory=dict)
    """ids of the annotations whose receipt was answered, by dataset"""
    told: dict[str, list[str]] = field(default_factory=dict)
    """ids of the messages that came, by receiver, as often as they came"""
    broken: list[str] = field(default_factory=list)
    """reasons for which a client gave up"""
    stopped: Stopped = field(default_factory=Stopped)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def accept(self, key: str, job: str) -> None:
        with self.guard:
            self.jobs.setdefault(job, set())
            self.keys.setdefault(key, set()).add(job)

    def received(self, dataset: str, annotation: str) -> None:
        """Record that an annotation was answered as durable."""
        with self.guard:
            self.annotations.setdefault(dataset, set()).add(annotation)

    def saw(self, job: str, state: str) -> None:
        """Record that a job was shown in a state."""
        if state in ("succeeded", "failed", "cancelled"):
            with self.guard:
                self.jobs[job].add(state)

    @contextmanager
    def injected(self, kind: Kind, hit: tuple[Running, ...] = ()) -> Iterator[None]:
        """Record a fault that lasts as long as the block."""
        began = time.time()
        try:
            yield
        finally:
            self.faults.append(Fault(kind, began, time.time(), hit))
