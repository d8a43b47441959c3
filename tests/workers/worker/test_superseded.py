"""Attempts that are handed back, superseded or delivered twice: one goes on, and only deaths count as deaths."""

import os
import subprocess
import threading
from datetime import UTC, datetime

import pytest
from redis import Redis

from core.progress import Observer
from core.train import Training
from storage.names import new_id
from storage.queue.leases import Leases
from storage.queue.queue import Queue
from storage.records import JobState, Outcome, QueuePlace
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.calls import noted
from tests.stores import failure_of, submit
from tests.waiting import HANG, SOON, until
from tests.workers.worker.attempts import (
    Faked,
    begun,
    in_thread,
    make_context,
    trained,
    with_settings,
    work_until,
)
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext


@pytest.mark.usefixtures("endless")
def test_an_attempt_is_handed_back(store: Store, context: WorkerContext, fake: list[Faked], id: str) -> None:
    attempts = Attempts(context)
    attempts.hand_back()
    thread = begun(context, id, attempts)
    attempts.hand_back()
    thread.join(SOON)
    assert Jobs(store).get(id).state is JobState.RUNNING
    assert Jobs(store).deaths(id) == 0
    assert context.queue.waiting() == {id}
    assert not context.redis_state.leases.held(id, 1, HANG)
    fake.append(lambda _: trained())
    Attempts(context).run(id)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED


def test_a_message_for_a_job_that_runs_or_is_over_is_dropped(
    store: Store, context: WorkerContext, redis: Redis, fake: list[Faked]
) -> None:
    id, seen = submit(store), threading.Event()
    fake.append(work_until(seen.is_set))
    thread = in_thread(lambda: Attempts(context).run(id))
    until(lambda: Jobs(store).get(id).attempt)
    Attempts(make_context(store, redis, "other")).run(id)
    assert Jobs(store).get(id).attempt == 1
    seen.set()
    thread.join()
    Attempts(context).run(id)
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)


def test_two_attempts_that_end_at_once_publish_one_version(
    store: Store, redis: Redis, fake: list[Faked], id: str
) -> None:
    together = threading.Barrier(2)

    def train(observer: Observer) -> Training:
        together.wait(SOON)
        return trained()

    fake.append(train)
    first = in_thread(lambda: Attempts(make_context(store, redis, "w1")).run(id))
    until(lambda: Jobs(store).get(id).attempt == 1)
    # the first worker is stopped past its lease: another takes the job, then both go on
    original = Leases.held
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Leases, "held", lambda *_: False)
        second = in_thread(lambda: Attempts(make_context(store, redis, "w2")).run(id))
        first.join(SOON)
        second.join(SOON)
    assert Leases.held is original
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)
    assert [version.number for version in Models(store).versions("news")] == [1]
    winner = job.outcome.attempt if job.outcome else 0
    loser = {1: 2, 2: 1}[winner]
    assert store.children(f"jobs/{id}/attempts/{loser}") == []
    assert len(store.children(f"jobs/{id}/attempts/{winner}")) == 4


@pytest.mark.usefixtures("endless")
def test_an_overtaken_attempt_stops(store: Store, context: WorkerContext, id: str) -> None:
    thread = begun(context, id)
    Jobs(store).record_outcome(id, Outcome(state=JobState.FAILED, attempt=9, finished_at=datetime.now(UTC)))
    thread.join(SOON)
    assert not thread.is_alive()
    assert Jobs(store).get(id).state is JobState.FAILED


@pytest.mark.usefixtures("endless")
def test_an_attempt_that_another_has_overtaken_ends_without_counting_as_a_death(
    store: Store, context: WorkerContext
) -> None:
    id, jobs = submit(store), Jobs(store)
    thread = begun(context, id)
    # its machine stood still for longer than the lease: another worker has begun
    assert jobs.claim_attempt(id, "other", 2)
    thread.join(SOON)
    assert not thread.is_alive()
    assert jobs.get(id).state is JobState.RUNNING
    assert jobs.deaths(id) == 1, "that of the other, should it end without a result"
    assert context.queue.waiting() == set()


def test_a_lease_that_ran_out_is_taken_again(store: Store, context: WorkerContext, fake: list[Faked]) -> None:
    id, again = submit(store), threading.Event()
    fake.append(work_until(again.is_set))
    thread = begun(with_settings(context, lease_seconds=1.0), id)
    context.redis_state.leases.revoke(id, 1)
    until(lambda: context.redis_state.leases.held(id, 1, HANG))
    again.set()
    thread.join()
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)


@pytest.mark.usefixtures("endless")
def test_the_heartbeat_has_stopped_when_a_job_is_handed_back(
    store: Store, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, attempts = submit(store), Attempts(context)
    beating = noted(
        monkeypatch,
        Jobs,
        "record_hand_back",
        lambda _, id, number: any(thread.name == f"heartbeat of {id}" for thread in threading.enumerate()),
    )
    thread = begun(context, id, attempts)
    attempts.hand_back()
    thread.join(SOON)
    assert beating == [False], "else it might renew the lease that was just given back"


def test_a_message_for_a_job_that_was_deleted_is_dropped(context: WorkerContext) -> None:
    Attempts(context).run(new_id("job"))


def run_orphan(context: WorkerContext, id: str, fake: list[Faked], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run an attempt whose worker has died, until its process would leave."""
    left = threading.Event()
    monkeypatch.setattr("workers.worker.heartbeat.os._exit", lambda code: left.set())
    # a process that has died, so that it is neither this one nor its parent
    dead = subprocess.Popen(["true"])
    dead.wait()
    fake.append(work_until(left.is_set))
    Attempts(context._replace(worker_pid=dead.pid)).run(id)
    assert left.is_set()


def test_a_child_whose_worker_died_before_it_began_leaves(
    store: Store, context: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch
) -> None:
    id, waiting = submit(store), []

    def noted(self: Queue, id: str, place: QueuePlace, *, at_front: bool = False) -> None:
        waiting.append((id, at_front))

    monkeypatch.setattr(Queue, "enqueue", noted)
    run_orphan(context, id, fake, monkeypatch)
    assert waiting[0] == (id, True), "another worker is to have the job at once"


def test_a_child_without_its_worker_ends_a_job_that_has_killed_enough(
    store: Store, context: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    for number in (1, 2):
        Jobs(store).claim_attempt(id, "w", number)
    run_orphan(context, id, fake, monkeypatch)
    assert (failure_of(store, id).type, context.queue.depth()) == ("/problems/worker-died", 0)


def test_a_child_whose_worker_lives_stays(
    store: Store, context: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    monkeypatch.setattr("workers.worker.heartbeat.os._exit", lambda code: pytest.fail("it has left"))
    fake.append(work_until(lambda: len(context.redis_state.trace(id)) > 5))
    Attempts(context._replace(worker_pid=os.getppid())).run(id)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED
