"""Real worker processes with real training, and their jobs when something is killed."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from redis import Redis

from core.documents.rows import SparseRows
from storage.errors import Unavailable
from storage.queue.connection import connect
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.records import Job, JobState
from storage.repositories.datasets import Batch
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store, open_store
from storage.upkeep.reconcile import Reconciler
from tests.processes import kill
from tests.stores import Valkey, make_dataset, submit
from tests.there import there
from tests.waiting import HANG, SLOW, until
from tests.workers.worker.prefork import started

LEASE = 1.0
"""Seconds of the lease of workers that die, or that must see soon that Redis is back; no other lease runs out on a slow
machine."""
ROOT = Path(__file__).parents[2]


class Service:
    """A store, a Valkey, worker processes, and a reconciler in a thread, for which the time of a lease passes in
    ``later`` only.
    """

    def __init__(self, folder: Path, valkey: Valkey) -> None:
        self.url = f"file://{folder}/store"
        self.store: Store = open_store(self.url)
        self.valkey = valkey
        self.redis: Redis = connect(valkey.url, HANG)
        self.jobs, self.redis_state, self.queue = Jobs(self.store), RedisState(self.redis, "q"), Queue(self.redis, "q")
        self.workers: list[ForkServerProcess] = []
        self.long = long_dataset(self.store)
        self._folder = folder
        self._now = 0.0
        self._rounds = 0
        self._done = threading.Event()
        self._reconciling = threading.Thread(target=self._reconcile)
        self._reconciling.start()

    def start_worker(self, **settings: Any) -> ForkServerProcess:
        """A worker that is ready for jobs."""
        before = self._count()
        values = {
            "store_url": self.url,
            "redis_url": self.valkey.url,
            "queue": "q",
            "lease_seconds": HANG,
            "drain_seconds": 0.2,
            **settings,
        }
        worker = started(self._log_of(len(self.workers)), values)
        self.workers.append(worker)
        until(lambda: self._count() > before, SLOW)
        return worker

    def log(self, number: int = 0) -> str:
        return self._log_of(number).read_text()

    def later(self) -> None:
        """Let the reconciler see the present state, and then find that more time has passed than a lease lasts."""
        before = self._rounds
        # the first of these may have begun before
        until(lambda: self._rounds >= before + 2)
        self._now += 2 * LEASE

    def post(self, dataset: str | None = None, algorithm: str = "svm", **options: Any) -> str:
        id = submit(self.store, dataset=dataset, algorithm=algorithm, options=options)
        self.queue.enqueue(id)
        return id

    def post_long(self) -> str:
        """A job that runs for longer than any test waits, once it has progress."""
        return self.running(self.post(self.long, "tsvm", **{"lambda": 1e-7}))

    def post_medium(self) -> str:
        """A job that takes some seconds, once it has progress."""
        return self.running(self.post(self.long, "svm", **{"lambda": 3e-6}))

    def running(self, id: str) -> str:
        until(lambda: self.redis_state.progress(id))
        return id

    def until(self, id: str, *states: JobState) -> Job:
        def reached() -> Job | None:
            job = self.jobs.get(id)
            return job if job.state in states else None

        job: Job = until(reached, SLOW)
        return job

    def close(self) -> None:
        self._done.set()
        self._reconciling.join()
        for worker in self.workers:
            for child in children(worker) if worker.is_alive() else []:
                kill(child)
            worker.kill()
            worker.join()
        self.redis.close()

    def _log_of(self, number: int) -> Path:
        return self._folder / f"worker-{number}.log"

    def _count(self) -> int:
        try:
            return len(self.redis_state.workers())
        except Unavailable:
            return 0

    def _reconcile(self) -> None:
        reconciler = Reconciler(self.jobs, self.redis_state, self.queue, lease_seconds=LEASE, clock=lambda: self._now)
        while not self._done.wait(0.05):
            with suppress(Unavailable):
                reconciler.reconcile()
                self._rounds += 1


def long_dataset(store: Store) -> str:
    """Documents without any structure, so that annealing has to work for a long time."""
    generator = np.random.default_rng(0)
    n, per_row, width = 40_000, 50, 20_000
    starts = generator.integers(0, 399, (n, per_row)) + np.arange(per_row) * 400
    matrix = SparseRows(
        np.arange(0, n * per_row + 1, per_row),
        starts.ravel().astype(np.uint32),
        generator.random(n * per_row, np.float32),
        width,
    )
    labels = [str(int(code)) if place < 1000 else None for place, code in enumerate(generator.integers(0, 8, n))]
    return make_dataset(store, [Batch(matrix, labels)]).id


def told_to_stop(worker: ForkServerProcess) -> int | None:
    """The exit code."""
    worker.terminate()
    worker.join(SLOW)
    return worker.exitcode


def children(worker: ForkServerProcess) -> list[psutil.Process]:
    try:
        return psutil.Process(worker.pid).children()
    except psutil.NoSuchProcess:
        return []


@pytest.fixture
def service(tmp_path: Path, valkey: Valkey) -> Iterator[Service]:
    made = Service(tmp_path, valkey)
    yield made
    made.close()


def versions(service: Service) -> list[int]:
    return [version.number for version in Models(service.store).versions("news")]


def test_a_cancel_ends_a_running_job(service: Service) -> None:
    service.start_worker()
    id = service.post_long()
    service.jobs.cancel(id)
    service.redis_state.request_cancel(id)
    service.until(id, JobState.CANCELLED)
    assert service.until(service.post(), JobState.SUCCEEDED).version == 1


def test_a_killed_child_costs_one_attempt(service: Service) -> None:
    worker = service.start_worker()
    id = service.post_medium()
    (child,) = children(worker)
    child.kill()
    until(lambda: service.jobs.get(id).attempt == 2)
    assert service.until(id, JobState.SUCCEEDED, JobState.FAILED).state is JobState.SUCCEEDED
    assert service.jobs.get(id).attempt == 2
    assert versions(service) == [1]
    assert worker.is_alive()


def test_a_job_that_kills_every_child_fails_and_says_so(service: Service) -> None:
    worker = service.start_worker()
    id = service.post_long()
    for attempt in (1, 2, 3):

        def runs(attempt: int = attempt) -> bool:
            return service.jobs.get(id).attempt == attempt and service.redis_state.progress(id) is not None

        until(runs)
        for child in children(worker):
            kill(child)
    outcome = there(service.until(id, JobState.FAILED).outcome)
    assert outcome.error is not None
    assert outcome.error.type == "/problems/worker-died"
    told = (
        r"the last was killed by SIGKILL when it had taken (\d+) MiB of memory, as the system does where "
        r"memory runs out"
    )
    found = re.search(told, outcome.error.detail)
    assert found
    assert 50 < int(found[1]) < 5000
    algorithm = service.jobs.get(id).request.algorithm
    # it is counted after it is recorded
    assert until(lambda: service.redis_state.outcome_times().get((algorithm, "failed"))).within["+Inf"] == 1


def test_a_killed_worker_takes_its_child_along_and_another_runs_the_job(service: Service) -> None:
    worker = service.start_worker(lease_seconds=LEASE)
    id = service.post_medium()
    (child,) = children(worker)
    worker.kill()
    worker.join()
    until(lambda: service.redis_state.workers() == [])
    until(lambda: not child.is_running())
    service.start_worker()
    until(lambda: not service.redis_state.leases.held(id, 1, HANG))
    service.later()
    until(lambda: service.jobs.get(id).attempt == 2)
    assert service.until(id, JobState.SUCCEEDED, JobState.FAILED).state is JobState.SUCCEEDED
    assert versions(service) == [1]
    service.until(service.post(), JobState.SUCCEEDED)


def test_a_child_stopped_past_its_lease_is_overtaken_and_is_no_death(service: Service) -> None:
    worker = service.start_worker(lease_seconds=LEASE)
    id = service.post_long()
    (child,) = children(worker)
    child.suspend()
    service.start_worker()
    until(lambda: not service.redis_state.leases.held(id, 1, HANG))
    service.later()
    until(lambda: service.jobs.get(id).attempt == 2)
    assert service.jobs.deaths(id) == 2
    child.resume()
    until(lambda: not child.is_running())
    job = service.jobs.get(id)
    assert (job.state, job.attempt, service.jobs.deaths(id)) == (JobState.RUNNING, 2, 1)
    assert service.redis_state.leases.held(id, 2, HANG)
    service.jobs.cancel(id)
    service.redis_state.request_cancel(id)
    service.until(id, JobState.CANCELLED)
    assert Models(service.store).names() == ([], None)


def test_an_emptied_redis_loses_no_job_and_disturbs_none(service: Service) -> None:
    service.start_worker(lease_seconds=4 * LEASE)
    running = service.post_long()
    waiting = [service.post() for _ in range(3)]
    service.redis.flushall()
    until(lambda: service.redis_state.leases.held(running, 1, HANG))
    service.later()
    until(lambda: set(waiting) <= service.queue.waiting())
    service.later()
    assert service.jobs.get(running).attempt == 1
    assert service.jobs.get(running).state is JobState.RUNNING
    service.jobs.cancel(running)
    for id in waiting:
        assert service.until(id, JobState.SUCCEEDED).attempt == 1
    assert versions(service) == [1, 2, 3]


def test_told_to_stop_a_worker_hands_its_job_to_another(service: Service) -> None:
    first = service.start_worker()
    id = service.post_medium()
    assert told_to_stop(first) == 0
    assert service.redis_state.workers() == []
    # only now: on a fast machine the job would end while a second worker starts
    service.start_worker()
    until(lambda: service.jobs.get(id).attempt == 2)
    assert service.jobs.deaths(id) == 1, "only the attempt that is running now"
    assert service.until(id, JobState.SUCCEEDED).attempt == 2
    assert versions(service) == [1]


def test_a_worker_outlasts_a_restart_of_redis(tmp_path: Path) -> None:
    valkey = Valkey(tmp_path)
    service = Service(tmp_path, valkey)

    def away() -> None:
        """Wait until the worker has logged it."""
        before = service.log().count("Redis")
        valkey.kill()
        until(lambda: service.log().count("Redis") > before)
        valkey.start()

    try:
        valkey.start()
        service.start_worker(lease_seconds=LEASE)
        running = service.post_long()
        away()
        until(lambda: len(service.redis_state.workers()) == 1)
        service.jobs.cancel(running)
        service.until(running, JobState.CANCELLED)
        assert service.until(service.post(), JobState.SUCCEEDED).attempt == 1
        away()
        service.until(service.post(), JobState.SUCCEEDED)
        assert service.workers[0].is_alive()
        assert told_to_stop(service.workers[0]) == 0
    finally:
        service.close()
        valkey.kill()


def test_a_worker_without_redis_waits_and_stops_when_told(tmp_path: Path) -> None:
    settings = {"STORE_URL": f"file://{tmp_path}", "REDIS_URL": f"unix://{tmp_path}/none", "LOG_FORMAT": "json"}
    environment = {**os.environ, **{f"HALFMOON_{name}": value for name, value in settings.items()}}
    program = (
        "from workers.worker.run import run_worker; from storage.process.settings import Settings; raise "
        "SystemExit(run_worker(Settings()))"
    )
    worker = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=environment, stderr=subprocess.PIPE)
    assert worker.stderr is not None
    for line in worker.stderr:
        if b"Redis does not answer" in line:
            break
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SLOW) == 0
    worker.stderr.close()
