"""A store that is full, hangs or fails: the job keeps its results and its lease, and this is no death."""

import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
import structlog.testing
from redis import Redis

from core.progress import Observer
from core.train import Training
from storage.errors import StoreUnavailable
from storage.queue.redis_state import RedisState
from storage.records import File, JobState
from storage.repositories.datasets import Datasets
from storage.repositories.job_attempts import Attempt
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store, open_store
from storage.store.folder import FolderStore
from storage.store.local_files import report_fetched
from tests.stores import failure_of, make_dataset, no_file_beyond, submit, two_clouds
from tests.there import there
from tests.waiting import HANG, SOON, until
from tests.workers.worker.attempts import Faked, in_thread, trained, with_settings, work_until
from workers.worker import store_retry
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext
from workers.worker.store_retry import StoreRetry


class Disk:
    """A disk with room for files up to a size only, from the end of a training until the test makes room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._full = ExitStack()
        self._waits: list[float] = []

    def train(self, observer: Observer) -> Training:
        self._full.enter_context(no_file_beyond(self._room))
        return replace(trained(), unlabeled=np.arange(12, 400), scores=np.zeros((388, 1)))

    def refuses(self) -> None:
        """Wait until the job has retried, and its back-off has grown."""
        until(lambda: len(self._waits) > 1)

    def __enter__(self) -> Self:
        # what is logged would go to a file that may not grow either
        self._full.enter_context(structlog.testing.capture_logs())
        patch = self._full.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(store_retry, "time", SimpleNamespace(sleep=self._wait, monotonic=time.monotonic))
        return self

    def _wait(self, seconds: float) -> None:
        self._waits.append(seconds)
        time.sleep(seconds)

    def __exit__(self, *_: object) -> None:
        self._full.close()


def submit_many(store: Store) -> str:
    return submit(store, dataset=make_dataset(store, [two_clouds(400)]).id)


@pytest.mark.parametrize("room", [0, 250, 1500, 3000])
def test_a_job_whose_results_find_no_room_waits_for_it(
    store: Store, context: WorkerContext, fake: list[Faked], room: int
) -> None:
    id = submit_many(store)
    with Disk(room) as disk:
        fake.append(disk.train)
        thread = in_thread(lambda: Attempts(with_settings(context, store_retry_seconds=HANG)).run(id))
        disk.refuses()
        assert Jobs(store).get(id).state is JobState.RUNNING
        assert context.redis_state.leases.held(id, 1, HANG)
    thread.join(SOON)
    job = Jobs(store).get(id)
    assert (job.state, job.attempt, job.version) == (JobState.SUCCEEDED, 1, 1)
    assert list(store.staging().parent.glob("*/*")) == []


@pytest.mark.parametrize("room", [1500, 3000])
def test_a_job_that_finds_no_room_for_long_fails_and_says_so(
    store: Store, context: WorkerContext, fake: list[Faked], room: int
) -> None:
    id = submit_many(store)
    with Disk(room) as disk:
        fake.append(disk.train)
        Attempts(with_settings(context, store_retry_seconds=0.3)).run(id)
    error = failure_of(store, id)
    assert (error.type, error.status) == (
        "/problems/insufficient-storage",
        507,
    )
    assert "File too large" in error.detail
    assert list(store.staging().parent.glob("*/*")) == []


def test_where_not_even_that_can_be_said_the_job_is_tried_again(
    store: Store, context: WorkerContext, fake: list[Faked]
) -> None:
    id = submit_many(store)
    with Disk(0) as disk:
        fake.append(disk.train)
        with pytest.raises(StoreUnavailable):
            Attempts(with_settings(context, store_retry_seconds=0.3)).run(id)
    assert Jobs(store).get(id).state is JobState.RUNNING
    assert not context.redis_state.leases.held(id, 1, HANG)
    fake.append(lambda _: trained())
    Attempts(context).run(id)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED


def test_a_cancel_is_heard_while_a_job_waits_for_room(store: Store, context: WorkerContext, fake: list[Faked]) -> None:
    id = submit_many(store)
    with Disk(1500) as disk:
        fake.append(disk.train)
        thread = in_thread(lambda: Attempts(with_settings(context, store_retry_seconds=HANG)).run(id))
        disk.refuses()
        Jobs(store).cancel(id)
        context.redis_state.request_cancel(id)
        thread.join(SOON)
        assert Jobs(store).get(id).state is JobState.CANCELLED


def test_a_job_that_was_overtaken_while_it_waited_for_room_adds_nothing(
    store: Store, context: WorkerContext, fake: list[Faked]
) -> None:
    id = submit_many(store)
    with Disk(3000) as disk:
        fake.append(disk.train)
        thread = in_thread(lambda: Attempts(with_settings(context, store_retry_seconds=HANG)).run(id))
        disk.refuses()
        Jobs(store).claim_attempt(id, "another")
        thread.join(SOON)
    job = Jobs(store).get(id)
    assert (job.state, job.attempt, Jobs(store).deaths(id)) == (JobState.RUNNING, 2, 1)
    assert Models(store).names() == ([], None)


def test_a_damaged_dataset_fails_its_job_at_once_and_is_named(
    store: Store, tmp_path: Path, context: WorkerContext, id: str
) -> None:
    key = Datasets(store).get(Jobs(store).get(id).request.dataset).files["values"].key
    store.replace(key, store.read(key)[:-1] + b"?")
    Attempts(
        with_settings(context._replace(store=open_store(f"file://{tmp_path}/store")), store_retry_seconds=HANG)
    ).run(id)
    error = failure_of(store, id)
    assert error.type == "/problems/damaged"
    assert key in error.detail


class Hanging:
    """A store with calls that hang, in the threads that are named, until they are let go."""

    def __init__(self, patch: pytest.MonkeyPatch, call: str, thread: str) -> None:
        self._go, self.entered, self._thread = threading.Event(), threading.Event(), thread
        self._original = getattr(FolderStore, call)
        patch.setattr(FolderStore, call, lambda store, *arguments: self._call(store, *arguments))

    def _call(self, store: FolderStore, key: str, *arguments: object) -> object:
        if threading.current_thread().name.startswith(self._thread) and "attempts" in key:
            self.entered.set()
            self._go.wait(SOON)
        return self._original(store, key, *arguments)

    def let_go(self) -> None:
        self._go.set()


def goes_on(redis: Redis, id: str) -> bool:
    """Whether the lease of the first attempt, and no other, is renewed some more times; else it fails after a while."""
    own, values = f"*:lease:{id}:1", set[Any]()

    def changed() -> bool:
        values.update(map(redis.get, redis.keys(own)))
        return len(values - {None}) > 4

    until(changed)
    return redis.keys(f"*:lease:{id}:*") == redis.keys(own)


@pytest.fixture
def brief(context: WorkerContext) -> WorkerContext:
    return with_settings(context, lease_seconds=0.4)


def test_the_lease_is_kept_while_the_store_hangs(
    store: Store, brief: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch, redis: Redis
) -> None:
    id, done = submit(store), threading.Event()
    fake.append(work_until(done.is_set))
    hanging = Hanging(monkeypatch, "children", "store watch")
    thread = in_thread(lambda: Attempts(brief).run(id))
    assert hanging.entered.wait(SOON)
    assert goes_on(redis, id)
    done.set()
    thread.join(SOON)
    hanging.let_go()
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)


def test_the_lease_is_kept_while_a_claim_hangs(
    store: Store, brief: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch, redis: Redis, id: str
) -> None:
    hanging = Hanging(monkeypatch, "create", "Thread-")
    thread = in_thread(lambda: Attempts(brief).run(id))
    assert hanging.entered.wait(SOON)
    assert goes_on(redis, id)
    hanging.let_go()
    thread.join(SOON)
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)


def test_no_exception_ends_the_heartbeat(
    store: Store, brief: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch, redis: Redis
) -> None:
    id, done, failed = submit(store), threading.Event(), threading.Event()

    def fail(*_: object) -> None:
        failed.set()
        raise ValueError("what nobody has thought of")

    monkeypatch.setattr(RedisState, "publish_progress", fail)
    fake.append(work_until(done.is_set))
    thread = in_thread(lambda: Attempts(brief).run(id))
    assert failed.wait(SOON)
    assert goes_on(redis, id)
    done.set()
    thread.join(SOON)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED


def test_documents_that_are_fetched_show_progress_and_can_be_cancelled(
    store: Store, context: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    dataset = Jobs(store).get(id).request.dataset
    phases: list[str] = []
    file = File(key=f"datasets/{dataset}/values.npy", sha256="0" * 64, bytes=3_400_000_000)

    def fetch(*_: object) -> None:
        report_fetched(file, 1_200_000_000)
        until(lambda: context.redis_state.progress(id))
        found = there(context.redis_state.progress(id))
        phases.append(found.phase)
        Jobs(store).cancel(id)
        context.redis_state.request_cancel(id)
        until(lambda: report_fetched(file, 1_300_000_000))

    monkeypatch.setattr(Datasets, "open", fetch)
    Attempts(context).run(id)
    assert phases == ["fetching the documents: 1,200 of 3,400 MB of values.npy"]
    assert Jobs(store).get(id).state is JobState.CANCELLED


@pytest.fixture
def lost_replies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys that were created with a lost reply the first time."""
    lost: list[str] = []
    create = FolderStore.create

    def lose(self: FolderStore, key: str, data: bytes) -> bool:
        created = create(self, key, data)
        if created and key.rpartition("/")[2] in ("1.json", "outcome.json"):
            lost.append(key)
            raise StoreUnavailable(f"cannot write {key}: the answer was lost")
        return created

    monkeypatch.setattr(FolderStore, "create", lose)
    return lost


def test_a_claim_and_an_outcome_whose_answers_were_lost_are_ours(
    store: Store, context: WorkerContext, fake: list[Faked], lost_replies: list[str], id: str
) -> None:
    fake.append(lambda _: trained())
    Attempts(with_settings(context, store_retry_seconds=HANG)).run(id)
    assert [key.rpartition("/")[2] for key in lost_replies][:2] == ["1.json", "outcome.json"]
    job = Jobs(store).get(id)
    assert (job.state, job.attempt, job.version) == (JobState.SUCCEEDED, 1, 1)
    assert all(store.exists(file.key) for file in there(job.outcome).files.values()), (
        "the winner does not remove its own files"
    )


def test_the_claim_of_another_is_not_ours(store: Store) -> None:
    id, jobs = submit(store), Jobs(store)
    first = jobs.claim_attempt(id, "w1", 1)
    assert isinstance(first, Attempt)
    assert jobs.claim_attempt(id, "w1", 1, first.started_at) == first
    assert jobs.claim_attempt(id, "w2", 1, first.started_at) is None
    assert jobs.claim_attempt(id, "w1", 1) is None
    assert jobs.claim_attempt(id, "w1", 3) is None


def test_calls_that_fail_late_count_as_much_as_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = [0.0], []

    class Time:
        @staticmethod
        def monotonic() -> float:
            return now[0]

        @staticmethod
        def sleep(seconds: float) -> None:
            now[0] += seconds

    def fail() -> None:
        calls.append(now[0])
        now[0] += 2.0
        raise StoreUnavailable("no answer")

    monkeypatch.setattr("workers.worker.store_retry.time", Time)
    with pytest.raises(StoreUnavailable):
        StoreRetry(5.0, lambda: False).call(fail)
    assert now[0] < 5.0 + 2.0, "no call begins when the budget is used up"
    assert len(calls) == 3
