"""A store that is full when a job has results: the job retries and keeps them, and this is no death."""

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import numpy as np
import pytest
import structlog.testing

from core.progress import Observer
from core.train import Training
from storage.errors import StoreUnavailable
from storage.records import JobState
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store, open_store
from tests.stores import failure_of, make_dataset, no_file_beyond, submit, two_clouds
from tests.waiting import HANG, SOON, until
from tests.workers.worker.attempts import Faked, in_thread, trained
from workers.worker import heartbeat
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext


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
        patch.setattr(heartbeat, "time", SimpleNamespace(sleep=self._wait, monotonic=time.monotonic))
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
        thread = in_thread(lambda: Attempts(context._replace(store_retry_seconds=HANG)).run(id))
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
        Attempts(context._replace(store_retry_seconds=0.3)).run(id)
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
            Attempts(context._replace(store_retry_seconds=0.3)).run(id)
    assert Jobs(store).get(id).state is JobState.RUNNING
    assert not context.redis_state.leases.held(id, 1, HANG)
    fake.append(lambda _: trained())
    Attempts(context).run(id)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED


def test_a_cancel_is_heard_while_a_job_waits_for_room(store: Store, context: WorkerContext, fake: list[Faked]) -> None:
    id = submit_many(store)
    with Disk(1500) as disk:
        fake.append(disk.train)
        thread = in_thread(lambda: Attempts(context._replace(store_retry_seconds=HANG)).run(id))
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
        thread = in_thread(lambda: Attempts(context._replace(store_retry_seconds=HANG)).run(id))
        disk.refuses()
        Jobs(store).claim_attempt(id, "another")
        thread.join(SOON)
    job = Jobs(store).get(id)
    assert (job.state, job.attempt, Jobs(store).deaths(id)) == (JobState.RUNNING, 2, 1)
    assert Models(store).names() == ([], None)


def test_a_damaged_dataset_fails_its_job_at_once_and_is_named(
    store: Store, tmp_path: Path, context: WorkerContext
) -> None:
    id = submit(store)
    key = Datasets(store).get(Jobs(store).get(id).request.dataset).files["values"].key
    store.replace(key, store.read(key)[:-1] + b"?")
    Attempts(context._replace(store=open_store(f"file://{tmp_path}/store"), store_retry_seconds=HANG)).run(id)
    error = failure_of(store, id)
    assert error.type == "/problems/damaged"
    assert key in error.detail
