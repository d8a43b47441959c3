"""Calls of a gateway with a long backlog and history on a slow store.

``python -m benchmarks.backlog`` writes a part of ``docs/storm.md``.
"""

import gc
import logging
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from unittest.mock import patch

import httpx
import structlog

from app import services
from app.settings import GatewaySettings
from benchmarks.base import Log, machine, options, put_section, table
from benchmarks.simulation.outside import SimulatedStore
from benchmarks.simulation.world import World
from core.problem import Status
from storage.names import new_id
from storage.queue.connection import connect
from storage.queue.queue import Queue
from storage.records import Dataset, JobRequest, JobState, Outcome, Publication, Record, Version
from storage.repositories.job_attempts import Attempt
from storage.repositories.jobs import Jobs
from storage.store import Store, json_records
from tests.app.conftest import serving
from tests.stores import Valkey

T = TypeVar("T")
_MODEL = "news"
_META = b'{"classes": ["no", "yes"], "n_features": 1}'
_NOW = datetime.now(UTC)
_TITLE = "## A long backlog on a slow store"
_TIMES = 4
"""Times that each call is made; the first reads what is kept from then on."""
_SETTLED_SECONDS = 20.0
"""Seconds after which the tasks of a gateway have begun and read what they keep."""


class Sizes(NamedTuple):
    """How much there is."""

    queued: int
    finished: int
    versions: int
    call_seconds: float
    """time that every call of the store takes"""


class Measured(NamedTuple):
    """A call with its durations."""

    what: str
    took: Sequence[tuple[float, float]]
    """seconds, and those of processors"""


class _SlowWorld:
    """In place of a simulated world: every call takes its time, and any number of calls are under way at a time."""

    process = ""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._lock = seconds, threading.Lock()

    def call(self, what: str, effect: Callable[[], T], failure: object) -> T:
        """A call of the store."""
        time.sleep(self._seconds)
        with self._lock:
            return effect()


class SlowStore(SimulatedStore):
    """A store in memory with the latency of a bucket."""

    def __init__(self, call_seconds: float) -> None:
        super().__init__(cast("World", _SlowWorld(call_seconds)))

    def writable(self) -> bool:
        """See Store."""
        return True

    def remove_abandoned(self) -> None:
        """See Store: nothing is unfinished."""

    def free(self) -> None:
        """See Store: it is not known."""

    def put(self, key: str, record: Record) -> None:
        """Keep a record, without a call."""
        self.content[key] = json_records.encode(record)


def fill(store: SlowStore, sizes: Sizes) -> tuple[str, str, Sequence[str]]:
    """Fill the store; returns a dataset that no job needs, a job that has succeeded and is not published, and the jobs
    that wait.
    """
    counts = {"n_documents": 1, "n_labeled": 1, "n_features": 1, "n_nonzeros": 1}
    busy, free = new_id("ds"), new_id("ds")
    for id in (busy, free):
        manifest = Dataset(
            id=id, documents=id, name=None, classes=[], sha256="", warnings=[], files={}, created_at=_NOW, **counts
        )
        store.put(f"datasets/{id}/manifest.json", manifest)
    for number in range(1, sizes.finished + 1):
        id = _submitted(store, busy)
        outcome = _succeeded(store, id)
        version = min(number, sizes.versions)
        store.put(f"jobs/{id}/published.json", Publication(name=_MODEL, version=version))
        if number <= sizes.versions:
            store.put(f"models/{_MODEL}/versions/{number}.json", _version(id, busy, outcome, number))
    done = _submitted(store, busy)
    _succeeded(store, done, sizes.versions)
    waiting = [_submitted(store, busy) for _ in range(sizes.queued)]
    for id in (done, *waiting):
        store.content[f"open/{id}"] = b""
    return free, done, waiting


def _submitted(store: SlowStore, dataset: str) -> str:
    id = new_id("job")
    request = JobRequest(id=id, dataset=dataset, model=_MODEL, algorithm="svm", options={}, seed=0, created_at=_NOW)
    store.put(f"jobs/{id}/request.json", request)
    return id


def _succeeded(store: SlowStore, id: str, versions_before: int = 0) -> Outcome:
    store.put(f"jobs/{id}/attempts/1.json", Attempt(number=1, worker="w", started_at=_NOW))
    file = store.file(f"jobs/{id}/attempts/1/model_meta.json", _META)
    store.content[file.key] = _META
    done = {"state": JobState.SUCCEEDED, "status": Status.CONVERGED, "versions_before": versions_before}
    outcome = Outcome(attempt=1, finished_at=_NOW, files={"model_meta": file}, **done)
    store.put(f"jobs/{id}/outcome.json", outcome)
    return outcome


def _version(job: str, dataset: str, outcome: Outcome, number: int) -> Version:
    what: dict[str, Any] = {
        "algorithm": "svm",
        "options": {},
        "classes": ["no", "yes"],
        "n_features": 1,
        "objective": None,
    }
    return Version(
        name=_MODEL,
        number=number,
        job=job,
        dataset=dataset,
        status=Status.CONVERGED,
        created_at=_NOW,
        files=outcome.files,
        **what,
    )


def measured(sizes: Sizes, log: Log) -> Iterator[Measured]:
    """Durations of every call."""
    store = SlowStore(sizes.call_seconds)
    free, done, waiting = fill(store, sizes)
    # the store is no part of the gateway
    gc.freeze()
    log("filled")
    began = _clocks()
    version = Jobs(cast("Store", store)).publish(done)
    yield Measured("publication of a version", [_since(began)])
    assert version is not None
    assert version.number == sizes.versions + 1
    with _gateway(store, waiting) as client:
        time.sleep(_SETTLED_SECONDS)
        log("settled")
        yield Measured("liveness", _calls(client, "GET", ["/v1/health/live"] * _TIMES))
        for name, path in (
            ("`/metrics`", "/metrics"),
            ("a page of jobs", "/v1/jobs"),
            ("a page of 500 jobs", "/v1/jobs?limit=500"),
            ("a model with all its versions", f"/v1/models/{_MODEL}"),
            ("a page of models", "/v1/models"),
            ("a page of datasets", "/v1/datasets"),
        ):
            yield Measured(name, _calls(client, "GET", [path] * _TIMES))
        yield Measured(
            "deletion of a version",
            _calls(client, "DELETE", [f"/v1/models/{_MODEL}/versions/{n + 1}" for n in range(_TIMES)]),
        )
        yield Measured("deletion of a dataset", _calls(client, "DELETE", [f"/v1/datasets/{free}"]))


def _calls(client: httpx.Client, method: str, paths: Sequence[str]) -> list[tuple[float, float]]:
    found = []
    for path in paths:
        began = _clocks()
        client.request(method, path).raise_for_status()
        found.append(_since(began))
    return found


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(began: tuple[float, float]) -> tuple[float, float]:
    now = _clocks()
    return now[0] - began[0], now[1] - began[1]


@contextmanager
def _gateway(store: SlowStore, waiting: Sequence[str]) -> Iterator[httpx.Client]:
    """A client of a gateway on the store; the jobs wait in its queue."""
    with ExitStack() as stack:
        folder = Path(os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(prefix="b-", dir="/tmp"))))
        valkey = stack.enter_context(Valkey(folder))
        settings = GatewaySettings(store_url=folder.as_uri(), redis_url=valkey.url)
        with connect(valkey.url, 60.0) as redis:
            queue = Queue(redis, settings.queue, settings.job_timeout_seconds)
            for id in waiting:
                queue.enqueue(id)
        stack.enter_context(patch.object(services, "open_store", lambda *_, **__: store))
        port = stack.enter_context(serving(settings))
        yield stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300.0, trust_env=False))


def section(sizes: Sizes, found: Sequence[Measured], log: Log) -> str:
    """The part of the page."""
    rows = []
    for each in found:
        later = [f"{statistics.median(taken):.2f}" for taken in zip(*each.took[1:], strict=True)]
        rows.append([each.what, *(f"{taken:.2f}" for taken in each.took[0]), *(later or ["", ""])])
    return (
        f"{_TITLE}\n\n"
        f"{sizes.queued:,} jobs wait, {sizes.finished:,} have ended, and a model has {sizes.versions:,} versions. "
        f"Every call of the store, which lies in memory, takes {1000 * sizes.call_seconds:g} ms. "
        f"One gateway is asked {_SETTLED_SECONDS:g} s after its start. "
        "Beside the seconds of a call stand those that gateway and client took of a processor: others on the "
        "machine change them less.\n"
        f"Made by `python -m benchmarks.backlog` on: {machine()}.\n{log.load}\n\n"
        + table(["call", "first time s", "of a processor", "then s (median)", "of a processor"], rows)
    )


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the part of the page."""
    given = options(__doc__, arguments, queued=10_000, finished=100_000, versions=5_000, call=0.01)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sizes, log = Sizes(given.queued, given.finished, given.versions, given.call), Log()
    put_section("storm.md", section(sizes, list(measured(sizes, log)), log))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
