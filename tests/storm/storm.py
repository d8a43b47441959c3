"""A storm: clients work while faults are injected; afterwards everything is checked against the promises."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from random import Random
from types import MappingProxyType
from typing import NamedTuple

import psutil

from storage.repositories.jobs import Jobs
from storage.repositories.webhooks import Webhooks
from storage.store import Store, open_store
from tests.e2e.service import Service, description
from tests.storm.clocks import COMPILER, Clocks
from tests.storm.crowd import STEADY, Body, Caller, Member, Prober, bodies, probes
from tests.storm.faults import Injector
from tests.storm.invariants import SOON_SECONDS, Evidence, nothing_is_left_behind, run_again
from tests.storm.ledger import Kind, Ledger, Stopped
from tests.storm.proxy import Proxy
from tests.storm.receivers import Receivers
from tests.there import there
from tests.waiting import HANG

KINDS = tuple(kind for kind in Kind if kind is not Kind.CLOCK_SET or COMPILER is not None)
"""The kinds of faults that can be injected here."""
_CLIENTS = 3
_WAITING = 12
"""Number of unfinished jobs from which on no more are posted before the next fault."""
_CLEANUP_INTERVAL_SECONDS = 2.0
_PAUSE = 0.1


class Location(NamedTuple):
    """The store of the service, where it is no folder of its own."""

    url: str
    root: Path
    """folder in which it lies"""
    store: Store
    environment: Mapping[str, str] = MappingProxyType({})
    """environment of the service, by which it reaches the server"""
    server: psutil.Process | None = None


class Storm(NamedTuple):
    """Plan of a storm; the same seed gives the same plan, but not the same moments."""

    seed: int
    jobs: int
    faults: Sequence[Kind]
    """kinds of faults, in an order of chance; repeated while there are jobs to be posted"""
    workers: int = 2
    lease_seconds: float = 3.0
    drain_seconds: float = 2.0
    abandoned_seconds: float = 15.0
    """seconds after which an unfinished operation counts as abandoned"""
    gap_seconds: tuple[float, float] = (0.3, 1.5)
    """least and most seconds between two faults"""
    cut_seconds: tuple[float, float] = (3.0, 6.0)
    """least seconds for which Redis is away, and most if clients were answered meanwhile"""
    soon_seconds: float = SOON_SECONDS
    """see Evidence"""
    rage_seconds: float = 600.0
    """seconds after which neither jobs nor faults begin any more"""
    slow_seconds: float = 1.0
    """seconds that a slow receiver of webhooks takes now and then"""
    dead_seconds: float = 0.0
    """seconds of each twenty in which one receiver is dead: what it misses twice comes minutes later"""
    told_seconds: float = HANG
    """seconds after the last job within which all receivers have been told"""

    def run(
        self, folder: Path, say: Callable[[str], None] = lambda line: None, bucket: Location | None = None
    ) -> Evidence:
        """Run it on a service in a folder with a short path; ``say`` gets a line after each fault."""
        ledger, data = Ledger(), folder / "data"
        with ExitStack() as stack:
            proxy = stack.enter_context(Proxy(data / "valkey" / "valkey.sock"))
            clocks = Clocks(folder)
            place = bucket or Location((data / "store").as_uri(), data / "store", open_store((data / "store").as_uri()))
            store = place.store
            environment = {**clocks.environment, **place.environment}
            service = stack.enter_context(
                Service(
                    data,
                    folder / "log",
                    self.workers,
                    proxy.url,
                    arguments=[place.url],
                    environment=environment,
                    **self._settings(),
                )
            )
            caller = Caller(service.url, ledger)
            stack.callback(caller.close)
            receivers = stack.enter_context(Receivers(ledger, self.slow_seconds, self.dead_seconds))
            for receiver in receivers.servers:
                receiver.secret = service.post("/v1/webhooks", {"url": receiver.url})["secret"]
            sent = [uploaded(caller, ledger, body) for body in bodies()]
            base = steady(caller, ledger, store, sent[0])
            evidence = Evidence(
                ledger,
                store,
                place.root,
                self.drain_seconds,
                {body.n_documents: body.sha256 for body in sent},
                soon_seconds=self.soon_seconds,
            )
            probers = [Prober(Caller(service.url, ledger), probe) for probe in probes(base, lambda: proxy.away)]
            for prober in probers:
                prober.start()
            chance = Random(self.seed)
            injector = Injector(
                service, proxy, clocks, evidence, chance, self.lease_seconds, self.cut_seconds, place.server
            )
            self._rage(service.url, injector, evidence, sent, chance, say)
            for prober in probers:
                prober.stop()
            say("the storm is over; waiting for the last jobs and the garbage collection")
            receivers.ill.clear()
            calm(caller, ledger, store)
            collected(evidence)
            say("waiting for the receivers")
            told(store, self.told_seconds)
            began = time.monotonic()
            code = service.stop()
            ledger.stopped = Stopped(code, time.monotonic() - began, tuple(map(description, service.left())))
        return evidence

    def _settings(self) -> dict[str, str]:
        return {
            "lease_seconds": str(self.lease_seconds),
            "drain_seconds": str(self.drain_seconds),
            "cleanup_interval_seconds": str(_CLEANUP_INTERVAL_SECONDS),
            "abandoned_after_seconds": str(self.abandoned_seconds),
            "keep_leftover_seconds": "1",
            "webhook_networks": '["127.0.0.0/8"]',
        }

    def _rage(
        self,
        url: str,
        injector: Injector,
        evidence: Evidence,
        sent: Sequence[Body],
        chance: Random,
        say: Callable[[str], None],
    ) -> None:
        """Run clients and faults at the same time; before each fault more jobs are posted, so that it finds some."""
        ledger, deadline = evidence.ledger, time.monotonic() + self.rage_seconds
        turns: SimpleQueue[str | None] = SimpleQueue()
        callers = [Caller(url, ledger) for _ in range(_CLIENTS)]
        with ThreadPoolExecutor(_CLIENTS) as pool:
            for place, caller in enumerate(callers):
                pool.submit(Member(caller, ledger, sent, f"{self.seed}-{place}", turns).work)
            # whatever happens here, nobody waits for ever
            with _ending(turns):
                posted = 0
                for number, kind in enumerate(self._progress(chance), 1):
                    due = self.jobs * min(number, len(self.faults)) // len(self.faults)
                    for turn in range(posted, min(due, posted + _WAITING - len(Jobs(evidence.store).unfinished_ids()))):
                        turns.put(f"{self.seed}-{turn}")
                        posted += 1
                    time.sleep(chance.uniform(*self.gap_seconds))
                    injector.inject(kind)
                    say(f"fault {number}, {kind.value}: {so_far(evidence)}")
                    if time.monotonic() > deadline or (number >= len(self.faults) and posted == self.jobs):
                        break
        for caller in callers:
            caller.close()

    def _progress(self, chance: Random) -> Iterator[Kind]:
        """The faults in an order of chance, then again in another."""
        while True:
            yield from chance.sample(self.faults, len(self.faults))


@contextmanager
def _ending(turns: SimpleQueue[str | None]) -> Iterator[None]:
    """Clients of the block; after it no more turns are taken than were posted."""
    try:
        yield
    finally:
        for _ in range(_CLIENTS):
            turns.put(None)


def so_far(evidence: Evidence) -> str:
    """State of the storm in a line."""
    accepted, open = len(evidence.ledger.jobs), len(Jobs(evidence.store).unfinished_ids())
    again = [each.seconds for each in run_again(evidence) if each.seconds is not None]
    return (
        f"{accepted} jobs accepted, {open} not over, {len(again)} ran again after a death, the slowest after "
        f"{max(again, default=0):.1f} s"
    )


def uploaded(caller: Caller, ledger: Ledger, body: Body) -> Body:
    """The body with its digest by the service, before any fault."""
    made = there(caller.upload(body, f"known-{body.size}"))
    return body._replace(sha256=ledger.datasets[made].sha256)


def steady(caller: Caller, ledger: Ledger, store: Store, body: Body) -> str:
    """Train the model of the predictions; returns its dataset."""
    dataset = next(id for id, promise in ledger.datasets.items() if promise.sha256 == body.sha256)
    assert caller.train({"dataset": dataset, "model": STEADY, "algorithm": "svm"}, STEADY) is not None
    calm(caller, ledger, store)
    caller.predict()
    assert ledger.answers[-1].status == 200
    return dataset


def calm(caller: Caller, ledger: Ledger, store: Store) -> None:
    """Wait until all jobs have ended, or none has for too long; clients see their final states."""
    jobs, deadline, waiting = Jobs(store), time.monotonic() + HANG, len(ledger.jobs)
    while (left := len(jobs.unfinished_ids())) and time.monotonic() < deadline:
        if left < waiting:
            waiting, deadline = left, time.monotonic() + HANG
        time.sleep(_PAUSE)
    for job in [job for job, states in ledger.jobs.items() if not states]:
        caller.look(job)


def told(store: Store, seconds: float) -> None:
    """Wait until no message waits for a receiver, or for so long."""
    webhooks, deadline = Webhooks(store), time.monotonic() + seconds
    while (webhooks.ended_jobs() or webhooks.waiting()) and time.monotonic() < deadline:
        time.sleep(0.5)


def collected(evidence: Evidence) -> None:
    """Wait until garbage collection has left nothing behind, or for too long."""
    deadline = time.monotonic() + HANG
    while any(nothing_is_left_behind(evidence)) and time.monotonic() < deadline:
        time.sleep(0.5)
