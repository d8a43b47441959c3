"""A storm: clients work, faults fall, and when it is calm again everything is held against what was promised."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.e2e.service import Service, until
from tests.storm.crowd import STEADY, Body, Caller, Member, Prober, bodies
from tests.storm.faults import Injector
from tests.storm.invariants import Evidence, nothing_is_left_behind
from tests.storm.ledger import Kind, Ledger
from tests.storm.proxy import Proxy
from workers.storage import open_store

_CLIENTS = 3
_GAP = (0.3, 1.5)
_CALM_SECONDS = 90.0
_TIDY_SECONDS = 2.0
_COLLECT_SECONDS = 30.0


class Storm(NamedTuple):
    """What to do; the same seed does the same things, as far as moments can be the same."""

    seed: int
    jobs: int
    faults: Sequence[Kind]
    """in no particular order"""
    workers: int = 2
    lease_seconds: float = 3.0
    drain_seconds: float = 2.0
    abandoned_seconds: float = 15.0
    """after which the collector takes what has not ended for abandoned"""

    def run(self, folder: Path) -> Evidence:
        """Run it on a service in a folder; the path must be short. Raises AssertionError if it does not become calm."""
        chance, ledger, data = Random(self.seed), Ledger(), folder / "data"
        with ExitStack() as stack:
            proxy = stack.enter_context(Proxy(data / "valkey" / "valkey.sock"))
            service = stack.enter_context(Service(data, folder / "log", self.workers, proxy.url, **self._settings()))
            caller = Caller(service.url, ledger)
            stack.callback(caller.close)
            sent = [uploaded(caller, ledger, body) for body in bodies()]
            base = steady(caller, ledger, sent[0])
            store = open_store((data / "store").as_uri())
            evidence = Evidence(ledger, store, data / "store", self.drain_seconds, {body.n_documents: body.sha256 for body in sent})
            prober = Prober(Caller(service.url, ledger), base, lambda: proxy.away)
            prober.start()
            injector = Injector(service, proxy, store, ledger, chance, self.lease_seconds)
            self._rage(service, injector, ledger, sent, chance)
            prober.stop()
            calm(caller, ledger)
            _collected(evidence)
            began = time.monotonic()
            assert service.stop() == 0, service.said()
            assert time.monotonic() - began < self.drain_seconds + 20
            assert service.left() == []
        return evidence

    def _settings(self) -> dict[str, str]:
        return {
            "lease_seconds": str(self.lease_seconds),
            "drain_seconds": str(self.drain_seconds),
            "tidy_seconds": str(_TIDY_SECONDS),
            "abandoned_seconds": str(self.abandoned_seconds),
            "keep_leftover_seconds": "1",
        }

    def _rage(self, service: Service, injector: Injector, ledger: Ledger, sent: Sequence[Body], chance: Random) -> None:
        """Clients and faults at the same time; before each fault some more jobs are posted, so that there is something to harm."""
        faults = list(self.faults)
        chance.shuffle(faults)
        permits = threading.Semaphore(0)
        shares = [self.jobs // _CLIENTS + (place < self.jobs % _CLIENTS) for place in range(_CLIENTS)]
        callers = [Caller(service.url, ledger) for _ in shares]
        members = [Member(caller, ledger, sent, f"{self.seed}-{place}", permits) for place, caller in enumerate(callers)]
        with ThreadPoolExecutor(_CLIENTS) as pool:
            working = [pool.submit(member.work, share) for member, share in zip(members, shares, strict=True)]
            # whatever happens here, nobody waits for ever
            with _released(permits, self.jobs):
                for place, kind in enumerate(faults, 1):
                    for _ in range(self.jobs * place // len(faults) - self.jobs * (place - 1) // len(faults)):
                        permits.release()
                    time.sleep(chance.uniform(*_GAP))
                    injector.inject(kind)
            for done in working:
                done.result()
        for caller in callers:
            caller.close()


@contextmanager
def _released(permits: threading.Semaphore, count: int) -> Iterator[None]:
    try:
        yield
    finally:
        permits.release(count)


def uploaded(caller: Caller, ledger: Ledger, body: Body) -> Body:
    """The body with the digest that the service gives it while all is well."""
    made = caller.upload(body, f"known-{body.size}")
    assert made is not None
    return body._replace(sha256=ledger.datasets[made].sha256)


def steady(caller: Caller, ledger: Ledger, body: Body) -> str:
    """Train the model that predictions are made with; its dataset."""
    dataset = next(id for id, promise in ledger.datasets.items() if promise.sha256 == body.sha256)
    job = caller.train({"dataset": dataset, "model": STEADY, "algorithm": "svm"}, STEADY)
    assert job is not None
    calm(caller, ledger)
    caller.predict()
    assert ledger.answers[-1].status == 200
    return dataset


def calm(caller: Caller, ledger: Ledger) -> None:
    """All jobs have ended."""

    def over() -> bool:
        waiting = [job for job, states in ledger.jobs.items() if not states]
        for job in waiting:
            caller.look(job)
        return not waiting

    until(over, _CALM_SECONDS)


def _collected(evidence: Evidence) -> None:
    """The collector had its time: until nothing is left, or until there is no hope."""
    deadline = time.monotonic() + _COLLECT_SECONDS
    while any(nothing_is_left_behind(evidence)) and time.monotonic() < deadline:
        time.sleep(0.5)
