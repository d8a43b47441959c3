"""The storm itself: clients on every gateway, faults one after the other, and the invariants afterwards."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import NamedTuple

from benchmarks.store_storm.faults import Fault, Hit, Injector
from benchmarks.store_storm.parties import START_SECONDS, Parties, parties
from storage.repositories.job_attempts import Attempt
from storage.repositories.jobs import Jobs
from storage.store import json_records, open_store
from tests.e2e.service import large
from tests.storm import invariants
from tests.storm.crowd import Body, Caller, GaveUp, Prober
from tests.storm.invariants import Evidence
from tests.storm.ledger import Answer, Ledger
from tests.storm.storm import calm, collected
from tests.there import there
from tests.waiting import until

STEADY = "steady"
_DRAIN_SECONDS = 2.0
_CLIENT_SECONDS = 180.0
_WAITING = 12
_DOCUMENT = {"documents": [{"indices": [1, 5, 9], "values": [0.5, 0.25, 1.0]}]}
_PROBED = {
    "liveness": ("GET", "/v1/health/live", None),
    "prediction": ("POST", f"/v1/models/{STEADY}/predict", _DOCUMENT),
    "prediction of a pinned version": ("POST", f"/v1/models/{STEADY}/versions/1/predict", _DOCUMENT),
}
"""Calls that are made all the time, by name: method, path, body."""
_MODELS = ("red", "green", "blue")


class Plan(NamedTuple):
    """Settings of a run."""

    kind: str
    """store: ``folder`` or ``s3``"""
    jobs: int
    faults: Sequence[Fault]
    seed: int = 1
    gateways: int = 2
    workers: int = 3
    gap_seconds: tuple[float, float] = (0.5, 1.5)
    away_seconds: float = 60.0
    """seconds for which the store is away at the end while predictions are measured; 0: not at all"""


class Result(NamedTuple):
    """Record of a run."""

    plan: Plan
    seconds: float
    states: Counter[str]
    hits: list[Hit]
    wrong: dict[str, list[str]]
    """sentences by invariant that does not hold"""
    statuses: Counter[int]
    probes: list[Answer]
    """requests that must always be answered"""
    quiet: tuple[float, float]
    """time without a fault, before the first"""
    away: tuple[float, float]
    """time for which the store was away while predictions were measured"""


def _ask(what: str, caller: Caller, number: int) -> None:
    method, path, body = _PROBED[what]
    caller.call(what, method, path, json=body)


def run(plan: Plan, folder: Path, say: Callable[[str], None]) -> Result:
    """Run the storm in an empty folder with a short path."""
    settings = {
        "lease_seconds": "3",
        "drain_seconds": str(_DRAIN_SECONDS),
        "cleanup_interval_seconds": "2",
        "abandoned_after_seconds": "60",
        "keep_leftover_seconds": "1",
        "allowed_hosts": '["*"]',
    }
    with ExitStack() as stack:
        environment = {f"HALFMOON_{name.upper()}": value for name, value in settings.items()}
        found = stack.enter_context(parties(folder, plan.kind, plan.gateways, plan.workers, environment))
        return _Storm(plan, found, say).run()


class _Storm:
    def __init__(self, plan: Plan, found: Parties, say: Callable[[str], None]) -> None:
        self._plan, self._parties, self._say = plan, found, say
        self._ledger = Ledger()
        self._chance = Random(plan.seed)
        self._injector = Injector(found, self._chance)
        self._jobs = Jobs(found.store)
        self._began = time.monotonic()

    def run(self) -> Result:
        callers = [Caller(gateway.url, self._ledger) for gateway in self._parties.gateways]
        datasets = [self._uploaded(caller, number) for number, caller in enumerate(callers)]
        self._train(callers[0], datasets[0], STEADY, STEADY)
        calm(callers[0], self._ledger, self._parties.store)
        probed = Ledger()
        # each gateway has the model in memory before the store is away
        probers = [
            Prober(Caller(gateway.url, probed), partial(_ask, what))
            for gateway in self._parties.gateways
            for what in _PROBED
        ]
        for prober in probers:
            prober.start()
        until(lambda: sum(answer.status == 200 for answer in probed.answers) > 20 * len(probers), START_SECONDS)
        self._say("quiet")
        quiet = self._lasting(min(20.0, self._plan.away_seconds))
        self._rage(callers, datasets)
        away = self._away()
        for prober in probers:
            prober.stop()
        self._say("waiting for the last jobs and the garbage collection")
        calm(callers[0], self._ledger, self._parties.store)
        evidence = self._evidence()
        collected(evidence)
        wrong = {check.__name__: list(check(evidence)) for check in _INVARIANTS} | {
            "healthy_jobs_are_not_restarted": list(self._restarted())
        }
        ended = Counter(job.state.value for job in evidence.jobs)
        statuses = Counter(answer.status or 0 for answer in self._ledger.answers)
        seconds = time.monotonic() - self._began
        return Result(self._plan, seconds, ended, self._injector.hits, wrong, statuses, probed.answers, quiet, away)

    def _lasting(self, seconds: float) -> tuple[float, float]:
        began = time.time()
        time.sleep(seconds)
        return began, time.time()

    def _away(self) -> tuple[float, float]:
        if not self._plan.away_seconds:
            return 0.0, 0.0
        # gateways that were replaced have loaded the model again
        time.sleep(5.0)
        self._say("the store is away")
        began = time.time()
        self._injector.inject(Fault.HANGS, self._plan.away_seconds)
        return began, time.time()

    def _rage(self, callers: list[Caller], datasets: list[str]) -> None:
        turns: SimpleQueue[int | None] = SimpleQueue()
        clients = [
            threading.Thread(target=self._work, args=(*each, turns), daemon=True)
            for each in zip(callers, datasets, strict=True)
        ]
        for client in clients:
            client.start()
        faults, posted = self._plan.faults, 0
        order = self._chance.sample(list(faults), len(faults))
        for number, fault in enumerate(order, 1):
            due = self._plan.jobs * number // len(order)
            for _ in range(posted, due):
                turns.put(posted)
                posted += 1
            time.sleep(self._chance.uniform(*self._plan.gap_seconds))
            self._injector.inject(fault)
            self._say(
                f"fault {number}, {fault.value}: {len(self._ledger.jobs)} jobs accepted, "
                f"{len(self._jobs.unfinished_ids())} not over"
            )
            while len(self._jobs.unfinished_ids()) > _WAITING or turns.qsize() > _WAITING:
                time.sleep(0.2)
        for _ in clients:
            turns.put(None)
        for client in clients:
            client.join(_CLIENT_SECONDS)

    def _work(self, caller: Caller, dataset: str, turns: "SimpleQueue[int | None]") -> None:
        while (turn := turns.get()) is not None:
            job = self._train(caller, dataset, _MODELS[turn % len(_MODELS)], f"turn-{turn}")
            if job is not None and turn % 10 == 9:
                caller.call("cancel", "POST", f"/v1/jobs/{job}/cancel")
            for path in ("/v1/jobs", f"/v1/datasets/{dataset}"):
                caller.call("read", "GET", path)

    def _train(self, caller: Caller, dataset: str, model: str, key: str) -> str | None:
        try:
            return caller.train({"dataset": dataset, "model": model, "algorithm": "svm"}, key)
        except GaveUp as error:
            self._ledger.broken.append(f"{key}: {error}")
            return None

    def _uploaded(self, caller: Caller, number: int) -> str:
        return there(caller.upload(Body("small", large(120, 60, 5, labeled=30), 120), f"known-{number}"))

    def _evidence(self) -> Evidence:
        root = self._parties.root
        return Evidence(self._ledger, open_store(root.as_uri()), root, _DRAIN_SECONDS, {})

    def _restarted(self) -> Iterator[str]:
        """Attempts after which another came, though neither their worker nor its child was killed."""
        store = self._parties.store
        hits = [(str(hit.worker), hit.ended) for hit in self._injector.hits if hit.worker]
        for id in self._ledger.jobs:
            for number in range(1, self._jobs.last_attempt(id)):
                attempt = json_records.read(store, f"jobs/{id}/attempts/{number}.json", Attempt)
                pid = attempt.worker.split(".")[-2]
                # by the clock of the store's writers, which may be off by an hour: the worker alone counts
                if not any(worker == pid for worker, _ in hits) and not store.exists(
                    f"jobs/{id}/attempts/{number}.returned.json"
                ):
                    yield f"job {id}: attempt {number} of {attempt.worker} was followed by another"


_INVARIANTS = (
    invariants.accepted_jobs_have_ended,
    invariants.no_job_was_doubled,
    invariants.successes_have_one_version,
    invariants.versions_have_no_gaps,
    invariants.promised_datasets_are_whole,
    invariants.nothing_is_left_behind,
    invariants.failures_are_explained,
    invariants.clients_got_final_answers,
)
