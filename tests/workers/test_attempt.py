"""One attempt, in this process: with the real training, and with a fake one that can be made to wait, fail or be overtaken."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from redis import Redis
from redis.exceptions import ConnectionError as NoConnection

import core.training
from core.errors import InvalidDocuments
from core.linear_model import LinearModel
from core.progress import Observer, TracePoint
from core.result import Status
from core.training import Training
from tests.workers.conftest import make_dataset, no_file_beyond, rows, submit, two_clouds
from workers.attempt import Attempts, Parts
from workers.contract import JobState, Publication
from workers.datasets import Batch, Datasets
from workers.errors import StoreUnavailable
from workers.jobs import Jobs
from workers.live import Live
from workers.models import Models
from workers.queue import Queue
from workers.storage import Store

Faked = Callable[[Observer], Training]


def make_parts(store: Store, redis: Redis, worker: str = "w", job_seconds: float = 60) -> Parts:
    return Parts(store, Live(redis, "q"), Queue(redis, "q"), worker, threads=1, lease_seconds=1.0, job_seconds=job_seconds)


@pytest.fixture
def parts(store: Store, redis: Redis) -> Parts:
    return make_parts(store, redis)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[Faked]:
    """What stands in for training; the last in the list is used."""
    chosen: list[Faked] = [lambda observer: trained()]

    def train(*_: Any, observer: Observer, **__: Any) -> Training:
        return chosen[-1](observer)

    monkeypatch.setattr(core.training, "train", train)
    return chosen


def trained(status: Status = Status.CONVERGED) -> Training:
    model = LinearModel(["no", "yes"], 21, np.arange(21, dtype=np.uint32), np.zeros((21, 1)), np.zeros(1))
    unlabeled = np.arange(6, 60)
    point = TracePoint("mfn", 1, 0.5, float("nan"), 1.0, 0.1)
    return Training(model, unlabeled, np.linspace(-1, 1, len(unlabeled))[:, None], None, 0.5, status, ["a warning"], [point], 1.0)


def work_until_stopped(observer: Observer, seconds: float = 10) -> Training:
    """A solver that reports every 20 ms."""
    start = time.monotonic()
    iteration = 0
    while time.monotonic() - start < seconds:
        iteration += 1
        if observer(TracePoint("mfn", iteration, 0.5, 0.5, 0.3, time.monotonic() - start)):
            return trained(Status.CANCELLED)
        time.sleep(0.02)
    return trained()


def eventually(condition: Callable[[], Any], seconds: float = 5) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)
    return found


def in_thread(act: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.mark.parametrize("algorithm", ["svm", "tsvm", "da"])
def test_a_model_is_trained_published_and_predicts(store: Store, parts: Parts, algorithm: str) -> None:
    id = submit(store, algorithm=algorithm)
    Attempts(parts).run(id)
    job = Jobs(store).get(id)
    assert job.state is JobState.SUCCEEDED
    assert job.outcome is not None
    assert job.outcome.status is Status.CONVERGED
    version = Models(store).resolve("news")
    assert (version.number, version.job, version.classes, version.n_features) == (1, id, ["no", "yes"], 21)
    model = Models(store).load(version)
    documents = Datasets(store).open(job.request.dataset)
    labels = [json.loads(line) for line in store.read(job.outcome.files["labels"].key).splitlines()]
    unlabeled = np.flatnonzero(documents.codes < 0)
    assert [line["id"] for line in labels] == [f"d{position}" for position in unlabeled]
    assert [line["label"] for line in labels] == [("no", "yes")[position % 2] for position in unlabeled]
    assert np.allclose([line["score"] for line in labels], model.scores(documents.rows)[unlabeled, 0], atol=1e-5)
    assert all(line["probability"] is None for line in labels)
    trace = json.loads(store.read(job.outcome.files["trace"].key))
    assert {"phase", "iteration", "objective", "stage_objective", "fraction", "seconds"} == set(trace[0])
    assert not parts.live.held(id, 1)


def test_more_classes_and_integers(store: Store, parts: Parts) -> None:
    documents = rows(*[{place % 3: 1.0} for place in range(12)])
    dataset = make_dataset(store, [Batch(documents, [(30, 10, 20)[place % 3] if place < 6 else None for place in range(12)])])
    id = submit(store, dataset=dataset.id)
    Attempts(parts).run(id)
    outcome = Jobs(store).get(id).outcome
    assert outcome is not None
    lines = [json.loads(line) for line in store.read(outcome.files["labels"].key).splitlines()]
    assert [(line["id"], line["label"]) for line in lines] == [(str(place), (30, 10, 20)[place % 3]) for place in range(6, 12)]
    assert all(line["score"] > 0 for line in lines)


def test_progress_is_told_while_it_runs(store: Store, parts: Parts, fake: list[Faked]) -> None:
    fake.append(lambda observer: work_until_stopped(observer, 0.5))
    id = submit(store)
    thread = in_thread(lambda: Attempts(parts).run(id))
    progress = eventually(lambda: parts.live.progress(id))
    assert (progress.phase, progress.fraction, progress.objective) == ("mfn", 0.3, 0.5)
    eventually(lambda: len(parts.live.trace(id)) > 5)
    thread.join()
    iterations = [point["iteration"] for point in parts.live.trace(id)]
    assert iterations == sorted(set(iterations))


@pytest.mark.parametrize("told_by", ["redis", "store"])
def test_a_cancel_is_heard(store: Store, parts: Parts, fake: list[Faked], told_by: str) -> None:
    fake.append(work_until_stopped)
    id = submit(store)
    thread = in_thread(lambda: Attempts(parts).run(id))
    eventually(lambda: parts.live.progress(id))
    Jobs(store).cancel(id)
    if told_by == "redis":
        parts.live.request_cancel(id)
    start = time.monotonic()
    thread.join(5)
    assert time.monotonic() - start < (0.6 if told_by == "redis" else 1.6)
    assert Jobs(store).get(id).state is JobState.CANCELLED
    assert Models(store).names() == ([], None)


def test_a_cancel_is_heard_without_redis(store: Store, parts: Parts, fake: list[Faked], monkeypatch: pytest.MonkeyPatch) -> None:
    fake.append(work_until_stopped)
    id = submit(store)
    thread = in_thread(lambda: Attempts(parts).run(id))
    eventually(lambda: parts.live.progress(id))

    def fails(*_: Any, **__: Any) -> None:
        raise NoConnection("cut off")

    monkeypatch.setattr(Redis, "execute_command", fails)
    time.sleep(0.3)
    Jobs(store).cancel(id)
    start = time.monotonic()
    thread.join(5)
    assert time.monotonic() - start < 1.0
    assert Jobs(store).get(id).state is JobState.CANCELLED


def test_what_ends_before_it_hears_the_cancel_has_succeeded(store: Store, parts: Parts, fake: list[Faked]) -> None:
    id = submit(store)

    def train(observer: Observer) -> Training:
        Jobs(store).cancel(id)
        return trained()

    fake.append(train)
    Attempts(parts).run(id)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED


def test_a_job_that_was_cancelled_in_between_is_not_trained(store: Store, parts: Parts, fake: list[Faked], monkeypatch: pytest.MonkeyPatch) -> None:
    id = submit(store)
    monkeypatch.setattr(Jobs, "cancel_requested", lambda *_: True)
    fake.append(lambda _: pytest.fail("trained"))
    Attempts(parts).run(id)
    assert Jobs(store).get(id).state is JobState.CANCELLED


def test_a_job_that_takes_too_long_fails_and_says_so(store: Store, redis: Redis, fake: list[Faked]) -> None:
    fake.append(work_until_stopped)
    id = submit(store)
    Attempts(make_parts(store, redis, job_seconds=0.2)).run(id)
    outcome = Jobs(store).get(id).outcome
    assert outcome is not None
    assert outcome.error is not None
    assert (outcome.state, outcome.error.type) == (JobState.FAILED, "/problems/timed-out")


@pytest.mark.parametrize(
    ("algorithm", "options", "labels", "kind"),
    [
        ("nothing", {}, ["a", "b"], "unknown-algorithm"),
        ("svm", {"lambda": -1}, ["a", "b"], "invalid-option"),
        ("svm", {}, ["a", "a"], "invalid-documents"),
    ],
)
def test_input_that_cannot_be_trained_on(
    store: Store, parts: Parts, algorithm: str, options: dict[str, Any], labels: Sequence[str], kind: str
) -> None:
    dataset = make_dataset(store, [Batch(rows({0: 1.0}, {1: 1.0}), labels)])
    id = submit(store, dataset=dataset.id, algorithm=algorithm, options=options)
    Attempts(parts).run(id)
    job = Jobs(store).get(id)
    assert job.state is JobState.FAILED
    assert job.outcome is not None
    assert job.outcome.error is not None
    assert job.outcome.error.type == f"/problems/{kind}"
    assert list(Jobs(store).unfinished_ids()) == []


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (ZeroDivisionError("secret"), "internal", "the training ended with ZeroDivisionError; it has been logged"),
        (MemoryError(), "out-of-memory", "the job needs more memory than the worker has"),
        (InvalidDocuments("bad"), "invalid-documents", "bad"),
    ],
)
def test_what_training_raises(store: Store, parts: Parts, fake: list[Faked], error: Exception, kind: str, detail: str) -> None:
    def train(observer: Observer) -> Training:
        raise error

    fake.append(train)
    id = submit(store)
    Attempts(parts).run(id)
    outcome = Jobs(store).get(id).outcome
    assert outcome is not None
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.detail) == (f"/problems/{kind}", detail)


OUT_OF_RANGE: dict[str, Callable[[Training], Training]] = {
    "status": lambda training: replace(training, status=Status.NUMERICAL_ERROR),
    "objective": lambda training: replace(training, objective=float("inf")),
    "scores": lambda training: replace(training, scores=np.full_like(training.scores, np.nan)),
    "coefficients": lambda training: replace(
        training, model=LinearModel(["no", "yes"], 21, np.arange(21, dtype=np.uint32), np.full((21, 1), np.inf), np.zeros(1))
    ),
    "intercept": lambda training: replace(
        training, model=LinearModel(["no", "yes"], 21, np.arange(21, dtype=np.uint32), np.zeros((21, 1)), np.array([np.nan]))
    ),
}


@pytest.mark.parametrize("what", OUT_OF_RANGE)
def test_numbers_that_ran_out_of_range_are_never_published(store: Store, parts: Parts, fake: list[Faked], what: str) -> None:
    fake.append(lambda _: OUT_OF_RANGE[what](trained()))
    id = submit(store)
    Attempts(parts).run(id)
    outcome = Jobs(store).get(id).outcome
    assert outcome is not None
    assert outcome.error is not None
    assert (outcome.state, outcome.error.type, outcome.files) == (JobState.FAILED, "/problems/numerical-error", {})
    assert "lambda" in outcome.error.detail
    assert Models(store).names() == ([], None)


def test_a_store_that_fails_leaves_the_job_to_another_attempt(store: Store, parts: Parts, fake: list[Faked]) -> None:
    def train(observer: Observer) -> Training:
        raise StoreUnavailable("the disk is full")

    fake.append(train)
    id = submit(store)
    with pytest.raises(StoreUnavailable):
        Attempts(parts).run(id)
    assert Jobs(store).get(id).state is JobState.RUNNING
    assert not parts.live.held(id, 1)
    fake.append(lambda _: trained())
    Attempts(parts).run(id)
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)


@pytest.mark.parametrize("room", [250, 1500, 3000])
def test_a_disk_without_room_for_the_results_leaves_the_job_to_another_attempt(store: Store, parts: Parts, fake: list[Faked], room: int) -> None:
    dataset = make_dataset(store, [two_clouds(400)])
    id = submit(store, dataset=dataset.id)

    def train(observer: Observer) -> Training:
        stack.enter_context(no_file_beyond(room))
        return replace(trained(), unlabeled=np.arange(12, 400), scores=np.zeros((388, 1)))

    fake.append(train)
    with ExitStack() as stack, pytest.raises(StoreUnavailable):
        Attempts(parts).run(id)
    assert Jobs(store).get(id).state is JobState.RUNNING
    assert list(store.staging().parent.glob("*/*")) == []
    fake.append(lambda _: trained())
    Attempts(parts).run(id)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED


def test_a_deleted_dataset_fails_the_job(store: Store, parts: Parts) -> None:
    id = submit(store)
    store.delete("datasets")
    Attempts(parts).run(id)
    outcome = Jobs(store).get(id).outcome
    assert outcome is not None
    assert outcome.error is not None
    assert outcome.error.type == "/problems/not-found"


def test_an_attempt_is_handed_back(store: Store, parts: Parts, fake: list[Faked]) -> None:
    fake.append(work_until_stopped)
    id = submit(store)
    attempts = Attempts(parts)
    attempts.hand_back()
    thread = in_thread(lambda: attempts.run(id))
    eventually(lambda: parts.live.progress(id))
    attempts.hand_back()
    thread.join(2)
    assert Jobs(store).get(id).state is JobState.RUNNING
    assert Jobs(store).deaths(id) == 0
    assert parts.queue.waiting() == {id}
    assert not parts.live.held(id, 1)
    fake.append(lambda _: trained())
    Attempts(parts).run(id)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED


def test_a_message_for_a_job_that_runs_or_is_over_is_dropped(store: Store, parts: Parts, redis: Redis, fake: list[Faked]) -> None:
    fake.append(lambda observer: work_until_stopped(observer, 0.4))
    id = submit(store)
    thread = in_thread(lambda: Attempts(parts).run(id))
    eventually(lambda: Jobs(store).get(id).attempt)
    Attempts(make_parts(store, redis, "other")).run(id)
    assert Jobs(store).get(id).attempt == 1
    thread.join()
    Attempts(parts).run(id)
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)


def test_two_attempts_that_end_at_once_publish_one_version(store: Store, redis: Redis, fake: list[Faked]) -> None:
    id = submit(store)
    together = threading.Barrier(2)

    def train(observer: Observer) -> Training:
        together.wait(5)
        return trained()

    fake.append(train)
    first = in_thread(lambda: Attempts(make_parts(store, redis, "w1")).run(id))
    eventually(lambda: Jobs(store).get(id).attempt == 1)
    # the first worker is stopped past its lease: another takes the job, then both go on
    original = Live.held
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Live, "held", lambda *_: False)
        second = in_thread(lambda: Attempts(make_parts(store, redis, "w2")).run(id))
        first.join(5)
        second.join(5)
    assert Live.held is original
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)
    assert [version.number for version in Models(store).versions("news")] == [1]
    winner = job.outcome.attempt if job.outcome else 0
    loser = {1: 2, 2: 1}[winner]
    assert store.children(f"jobs/{id}/attempts/{loser}") == []
    assert len(store.children(f"jobs/{id}/attempts/{winner}")) == 4


def test_an_overtaken_attempt_stops(store: Store, parts: Parts, fake: list[Faked]) -> None:
    fake.append(work_until_stopped)
    id = submit(store)
    thread = in_thread(lambda: Attempts(parts).run(id))
    eventually(lambda: parts.live.progress(id))
    Jobs(store).finish(id, Jobs(store).get(id).outcome or _failed())
    thread.join(3)
    assert not thread.is_alive()
    assert Jobs(store).get(id).state is JobState.FAILED


def _failed() -> Any:
    from datetime import UTC, datetime

    from workers.contract import Outcome

    return Outcome(state=JobState.FAILED, attempt=9, finished_at=datetime.now(UTC))


def test_nothing_is_left_in_the_staging_area(store: Store, parts: Parts) -> None:
    Attempts(parts).run(submit(store, dataset=make_dataset(store, [two_clouds()]).id))
    assert list(store.staging().parent.glob("*/*")) == []


def test_training_starts_from_the_model_it_was_told(store: Store, parts: Parts) -> None:
    Attempts(parts).run(submit(store, algorithm="tsvm"))
    first = Models(store).resolve("news")
    again = submit(store, algorithm="tsvm", start=Publication(name="news", version=first.number))
    Attempts(parts).run(again)
    outcome = Jobs(store).get(again).outcome
    assert outcome is not None
    phases = {point["phase"] for point in json.loads(store.read(outcome.files["trace"].key))}
    assert phases == {"tsvm/stage=0"}, "a warm start needs no supervised solution and no stages of λ'"
    assert outcome.objective == pytest.approx(first.objective, rel=1e-2)


def test_a_start_that_was_deleted_fails_the_job_by_name(store: Store, parts: Parts) -> None:
    id = submit(store, algorithm="svm", start=Publication(name="gone", version=3))
    Attempts(parts).run(id)
    outcome = Jobs(store).get(id).outcome
    assert outcome is not None
    assert outcome.error is not None
    assert "gone" in outcome.error.detail
