"""The serving storm: jobs and predictions while every process is replaced, an alias moves, and a gateway is killed."""

import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks.documents import as_json, as_npz, documents, labels_of
from benchmarks.serving.clients import FINAL, Caller, Load, Posted, Prediction
from benchmarks.serving.fleet import Fleet, fleet

MODEL, ALIAS = "steady", "live"
_MODELS = ("a", "b", "c")
_DOCUMENTS, _LABELED = 300, 60
_END_SECONDS = 600.0


class Plan(NamedTuple):
    """Settings of a run."""

    gateways: int = 2
    workers: int = 3
    jobs: int = 300
    rate: float = 300.0
    """predictions a second"""
    connections: int = 16


class Phase(NamedTuple):
    """A stretch of time, by ``time.monotonic``."""

    name: str
    began: float
    ended: float


class Result(NamedTuple):
    """Record of a run."""

    predictions: list[Prediction]
    phases: list[Phase]
    states: Counter[str]
    """final states of the jobs"""
    lost: int
    """jobs that were accepted and have not ended"""
    doubled: int
    """jobs beyond one of a key, and versions beyond one of a job"""
    stops: dict[str, list[float]]
    """seconds that processes took to stop, by kind"""
    moved: float
    """time at which the answer to the moved alias came"""
    versions: tuple[int, int]
    """versions of the alias before and after"""

    def of(self, name: str) -> list[Prediction]:
        """The predictions that ended in a phase."""
        (phase,) = (each for each in self.phases if each.name == name)
        return [each for each in self.predictions if phase.began <= each.ended < phase.ended]

    def stale_seconds(self) -> float:
        """How long after the answer to the moved alias a prediction began that was answered by the version before; 0 if
        none was.
        """
        return max([each.began - self.moved for each in self.predictions if each.version == self.versions[0]] + [0.0])


def run(plan: Plan, say: Callable[[str], None]) -> Result:
    """Run the storm in a temporary folder."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="serving-", dir="/tmp"))
        # a drain is short, so that jobs are handed back, too
        found = stack.enter_context(fleet(Path(folder), plan.gateways, plan.workers, drain_seconds="1"))
        say(f"{plan.gateways} gateways and {plan.workers} workers are ready")
        return _Storm(plan, found, say).run()


class _Storm:
    def __init__(self, plan: Plan, found: Fleet, say: Callable[[str], None]) -> None:
        self._plan, self._fleet, self._say = plan, found, say
        self._clerk = Caller(found.url)
        self._phases: list[Phase] = []
        self._stops: dict[str, list[float]] = {"gateway": [], "worker": []}

    def run(self) -> Result:
        dataset = self._upload()
        for _ in range(2):
            self._train(dataset)
        self._clerk.json("PUT", f"/v1/models/{MODEL}/aliases/{ALIAS}", {"version": 1})
        posted = Posted(self._fleet.url, dataset, _MODELS)
        body = as_json(documents(5, seed=1))
        path = f"/v1/models/{MODEL}@{ALIAS}/predict"
        load = Load(self._fleet.url, path, body, self._plan.rate, self._plan.connections)
        for _ in range(
            4 * self._plan.gateways
        ):  # connections of their own, so that every gateway has the model in memory
            assert Caller(self._fleet.url).call("POST", path, body)[0] == 200
        with load.running():
            with self._phase("nothing else"):
                time.sleep(5.0)
            posting = threading.Thread(target=self._post, args=(posted,))
            with self._phase("rolling restart"):
                posting.start()
                self._replace_all()
            with self._phase("alias moved"):
                moved = self._move_alias()
                time.sleep(2.0)
            with self._phase("the other jobs"):
                posting.join()
            with self._phase("one gateway killed"):
                self._fleet.kill_gateway(next(iter(self._fleet.gateways)))
                time.sleep(2.0)
                self._fleet.add_gateway()
            with self._phase("the last jobs"):
                states = self._ended(posted)
        versions = posted.versions()
        doubled = sum(count - 1 for jobs in versions.values() for count in Counter(jobs).values())
        doubled += sum(map(len, versions.values())) - Counter(states.values())["succeeded"]
        lost = sum(state not in FINAL for state in states.values()) + self._plan.jobs - len(posted.jobs)
        return Result(
            load.predictions, self._phases, Counter(states.values()), lost, doubled, self._stops, moved, (1, 2)
        )

    def _upload(self) -> str:
        given = documents(_DOCUMENTS)
        labels = [label if place < _LABELED else "" for place, label in enumerate(labels_of(given))]
        status, text = self._clerk.call(
            "POST", "/v1/datasets", as_npz(given, labels), {"Content-Type": "application/x-npz"}
        )
        assert status == 201, text
        return str(httpx.Response(201, content=text).json()["id"])

    def _train(self, dataset: str) -> None:
        job = self._clerk.json(
            "POST", "/v1/jobs", {"dataset": dataset, "model": MODEL, "algorithm": "svm", "publish": "always"}
        )["id"]
        deadline = time.monotonic() + _END_SECONDS
        while (
            state := self._clerk.json("GET", f"/v1/jobs/{job}")["state"]
        ) not in FINAL and time.monotonic() < deadline:
            time.sleep(0.1)
        assert state == "succeeded", state

    def _post(self, posted: Posted) -> None:
        for number in range(self._plan.jobs):
            posted.post(number)
        self._say(f"{self._plan.jobs} jobs are accepted")

    def _replace_all(self) -> None:
        for port in list(self._fleet.gateways):
            self._stops["gateway"].append(self._fleet.replace_gateway(port))
            self._say(f"a gateway was replaced; it took {self._stops['gateway'][-1]:.1f} s to stop")
        for _ in range(self._plan.workers):
            self._stops["worker"].append(self._fleet.replace_worker())
            self._say(f"a worker was replaced; it took {self._stops['worker'][-1]:.1f} s to stop")

    def _move_alias(self) -> float:
        self._clerk.json("PUT", f"/v1/models/{MODEL}/aliases/{ALIAS}", {"version": 2})
        return time.monotonic()

    def _ended(self, posted: Posted) -> dict[str, str]:
        deadline, states = time.monotonic() + _END_SECONDS, posted.states()
        while any(state not in FINAL for state in states.values()) and time.monotonic() < deadline:
            time.sleep(2.0)
            states = posted.states()
        return states

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self._say(name)
        began = time.monotonic()
        yield
        self._phases.append(Phase(name, began, time.monotonic()))


def median_milliseconds(predictions: list[Prediction]) -> float:
    """Median of the times from when predictions were due to their answers."""
    return 1000 * statistics.median(each.ended - each.due for each in predictions)
