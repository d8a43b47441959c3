"""One attempt, in this process: with the real training, and with a fake one that can be made to wait, fail or be
superseded.
"""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from redis import Redis
from redis.exceptions import ConnectionError as NoConnection

import core.train
from core.documents.drawn import Draw
from core.errors import InvalidDocuments
from core.models.model import LinearModel
from core.problem import Status
from core.progress import Observer, Phase, TracePoint
from core.train import Training
from storage.errors import StoreUnavailable
from storage.records import JobState, Publication
from storage.repositories.datasets import Batch, Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.calls import meanwhile, noted
from tests.stores import failure_of, make_dataset, outcome_of, rows, sparse, submit
from tests.there import there
from tests.waiting import HANG, SOON, until
from tests.workers.worker.attempts import (
    Faked,
    attempted,
    begun,
    in_thread,
    make_context,
    trained,
    work_until,
)
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext


@pytest.mark.parametrize("algorithm", ["svm", "tsvm", "da", "cuts3vm"])
def test_a_model_is_trained_published_and_predicts(store: Store, context: WorkerContext, algorithm: str) -> None:
    options = {} if algorithm == "svm" else {"positive_fraction": 0.5}
    id = attempted(store, context, algorithm=algorithm, options=options)
    job = Jobs(store).get(id)
    assert job.state is JobState.SUCCEEDED
    assert job.outcome is not None
    assert job.outcome.status is Status.CONVERGED
    version = Models(store).resolve("news")
    assert (version.number, version.job, version.classes, version.n_features) == (1, id, ["no", "yes"], 21)
    model = Models(store).load(version)
    documents = Datasets(store).open(job.request.dataset)
    labels = [json.loads(line) for line in store.read(job.outcome.files["labels"].key).splitlines()]
    unlabeled = np.flatnonzero(documents.class_indices < 0)
    assert [line["id"] for line in labels] == [f"d{position}" for position in unlabeled]
    assert [line["label"] for line in labels] == [("no", "yes")[position % 2] for position in unlabeled]
    assert np.allclose(
        [line["score"] for line in labels], model.scores(sparse(documents.rows))[unlabeled, 0], atol=1e-5
    )
    assert all(line["probability"] is None for line in labels)
    trace = json.loads(store.read(job.outcome.files["trace"].key))
    assert {"phase", "iteration", "objective", "stage_objective", "fraction", "seconds"} == set(trace[0])
    assert not context.redis_state.leases.held(id, 1, HANG)


def test_what_nothing_was_said_of_is_chosen_reported_and_calibrated(store: Store, context: WorkerContext) -> None:
    id = attempted(store, context, algorithm="auto")
    outcome = outcome_of(store, id)
    assert outcome.report is not None
    assert outcome.report["chosen"]["algorithm"] in [each["algorithm"] for each in outcome.report["tried"]]
    assert sum(outcome.report["class_fractions"].values()) == pytest.approx(1)
    labels = [json.loads(line) for line in store.read(outcome.files["labels"].key).splitlines()]
    assert all(0 <= line["probability"] <= 1 for line in labels)
    model = Models(store).load(Models(store).resolve("news"))
    found = there(model.probabilities(model.scores(rows({0: 1.0}, {1: 1.0}))))
    assert np.allclose(found.sum(axis=1), 1)


def test_more_classes_and_integers(store: Store, context: WorkerContext) -> None:
    documents = rows(*[{place % 3: 1.0} for place in range(12)])
    dataset = make_dataset(
        store, [Batch(documents, [(30, 10, 20)[place % 3] if place < 6 else None for place in range(12)])]
    )
    id = attempted(store, context, dataset=dataset.id)
    outcome = outcome_of(store, id)
    lines = [json.loads(line) for line in store.read(outcome.files["labels"].key).splitlines()]
    assert [(line["id"], line["label"]) for line in lines] == [
        (str(place), (30, 10, 20)[place % 3]) for place in range(6, 12)
    ]
    assert all(line["score"] > 0 for line in lines)


def test_progress_is_told_while_it_runs(store: Store, context: WorkerContext, fake: list[Faked]) -> None:
    id, told = submit(store), threading.Event()
    fake.append(work_until(told.is_set))
    thread = in_thread(lambda: Attempts(context).run(id))
    progress = until(lambda: context.redis_state.progress(id))
    assert (progress.phase, progress.fraction, progress.objective) == ("mfn", 0.3, 0.5)
    until(lambda: len(context.redis_state.trace(id)) > 5)
    told.set()
    thread.join()
    iterations = [point["iteration"] for point in context.redis_state.trace(id)]
    assert iterations == sorted(set(iterations))


@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize("told_by", ["redis", "store"])
def test_a_cancel_is_heard(
    store: Store, context: WorkerContext, monkeypatch: pytest.MonkeyPatch, told_by: str, id: str
) -> None:
    """By either alone: Redis, which is read with every heartbeat, or the store, which is read less often."""
    thread = begun(context, id)
    if told_by == "redis":
        monkeypatch.setattr(Jobs, "cancel_requested", lambda *_: False)
        context.redis_state.request_cancel(id)
    Jobs(store).cancel(id)
    thread.join(SOON)
    assert Jobs(store).get(id).state is JobState.CANCELLED
    assert Models(store).names() == ([], None)


@pytest.mark.usefixtures("endless")
def test_a_cancel_is_heard_without_redis(
    store: Store, context: WorkerContext, monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    thread = begun(context, id)
    cut_off: list[int] = []

    def fails(*_: Any, **__: Any) -> None:
        cut_off.append(1)
        raise NoConnection("cut off")

    monkeypatch.setattr(Redis, "execute_command", fails)
    consulted = noted(monkeypatch, Jobs, "outcome", lambda *_: len(cut_off))
    until(lambda: len(consulted) > 1)
    assert Jobs(store).get(id).state is JobState.RUNNING
    before = len(consulted)
    until(lambda: len(consulted) > before + 3)
    Jobs(store).cancel(id)
    thread.join(SOON)
    assert Jobs(store).get(id).state is JobState.CANCELLED
    assert np.median(np.diff(consulted[1:])) <= 4, (
        "the store is asked at every second beat or third, not at every tenth as while Redis answers"
    )


def test_what_ends_before_it_hears_the_cancel_has_succeeded(
    store: Store, context: WorkerContext, fake: list[Faked], id: str
) -> None:

    def train(observer: Observer) -> Training:
        Jobs(store).cancel(id)
        return trained()

    fake.append(train)
    Attempts(context).run(id)
    assert Jobs(store).get(id).state is JobState.SUCCEEDED


def test_a_job_that_was_cancelled_in_between_is_not_trained(
    store: Store, context: WorkerContext, fake: list[Faked], monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    monkeypatch.setattr(Jobs, "cancel_requested", lambda *_: True)
    fake.append(lambda _: pytest.fail("trained"))
    Attempts(context).run(id)
    assert Jobs(store).get(id).state is JobState.CANCELLED


@pytest.mark.usefixtures("endless")
def test_a_job_that_takes_too_long_fails_and_says_so(store: Store, redis: Redis, id: str) -> None:
    Attempts(make_context(store, redis, job_timeout_seconds=0.2)).run(id)
    assert failure_of(store, id).type == "/problems/timed-out"


@pytest.mark.parametrize(
    ("algorithm", "options", "labels", "kind"),
    [
        ("nothing", {}, ["a", "b"], "unknown-algorithm"),
        ("svm", {"lambda": -1}, ["a", "b"], "invalid-option"),
        ("svm", {}, ["a", "a"], "invalid-documents"),
    ],
)
def test_input_that_cannot_be_trained_on(
    store: Store, context: WorkerContext, algorithm: str, options: dict[str, Any], labels: Sequence[str], kind: str
) -> None:
    dataset = make_dataset(store, [Batch(rows({0: 1.0}, {1: 1.0}), labels)])
    id = attempted(store, context, dataset=dataset.id, algorithm=algorithm, options=options)
    assert failure_of(store, id).type == f"/problems/{kind}"
    assert list(Jobs(store).unfinished_ids()) == []


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (ZeroDivisionError("secret"), "internal", "the training ended with ZeroDivisionError; it has been logged"),
        (MemoryError(), "out-of-memory", "the job needs more memory than the worker has"),
        (InvalidDocuments("bad"), "invalid-documents", "bad"),
    ],
)
def test_what_training_raises(
    store: Store, context: WorkerContext, fake: list[Faked], error: Exception, kind: str, detail: str
) -> None:
    def train(observer: Observer) -> Training:
        raise error

    fake.append(train)
    problem = failure_of(store, attempted(store, context))
    assert (problem.type, problem.detail) == (f"/problems/{kind}", detail)


OUT_OF_RANGE: dict[str, Callable[[Training], Training]] = {
    "status": lambda training: replace(training, status=Status.NUMERICAL_ERROR),
    "objective": lambda training: replace(training, objective=float("inf")),
    "scores": lambda training: replace(training, scores=np.full_like(training.scores, np.nan)),
    "coefficients": lambda training: replace(
        training,
        model=LinearModel(["no", "yes"], 21, np.arange(21, dtype=np.uint32), np.full((21, 1), np.inf), np.zeros(1)),
    ),
    "intercept": lambda training: replace(
        training,
        model=LinearModel(["no", "yes"], 21, np.arange(21, dtype=np.uint32), np.zeros((21, 1)), np.array([np.nan])),
    ),
}


@pytest.mark.parametrize("what", OUT_OF_RANGE)
def test_numbers_that_ran_out_of_range_are_never_published(
    store: Store, context: WorkerContext, fake: list[Faked], what: str
) -> None:
    fake.append(lambda _: OUT_OF_RANGE[what](replace(trained(), range_remedy="raise lambda")))
    id = attempted(store, context)
    problem = failure_of(store, id)
    assert (problem.type, outcome_of(store, id).files) == ("/problems/numerical-error", {})
    assert problem.detail.endswith("so there is no model; raise lambda")
    assert Models(store).names() == ([], None)


def test_a_store_that_fails_leaves_the_job_to_another_attempt(
    store: Store, context: WorkerContext, fake: list[Faked], id: str
) -> None:
    def train(observer: Observer) -> Training:
        raise StoreUnavailable("the disk is full")

    fake.append(train)
    with pytest.raises(StoreUnavailable):
        Attempts(context).run(id)
    assert Jobs(store).get(id).state is JobState.RUNNING
    assert not context.redis_state.leases.held(id, 1, HANG)
    fake.append(lambda _: trained())
    Attempts(context).run(id)
    job = Jobs(store).get(id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)


def test_a_deleted_dataset_fails_the_job(store: Store, context: WorkerContext, id: str) -> None:
    store.delete("datasets")
    Attempts(context).run(id)
    assert failure_of(store, id).type == "/problems/not-found"


def test_a_job_that_was_deleted_before_its_claim_is_dropped(
    store: Store, context: WorkerContext, monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    def delete() -> None:
        Jobs(store).cancel(id)
        Jobs(store).delete(id)

    meanwhile(monkeypatch, Jobs, "claim_attempt", delete)
    Attempts(context).run(id)
    assert store.children("models") == []


@pytest.mark.usefixtures("endless")
def test_progress_and_trace_of_a_cancelled_job_outlast_redis(
    store: Store, context: WorkerContext, redis: Redis, id: str
) -> None:
    thread = in_thread(lambda: Attempts(context).run(id))
    until(lambda: len(context.redis_state.trace(id)) > 3)
    Jobs(store).cancel(id)
    thread.join(SOON)
    redis.flushall()
    job = Jobs(store).get(id)
    assert (job.state, job.progress.phase, job.progress.fraction) == (JobState.CANCELLED, "mfn", 0.3)
    points = json.loads(store.local(there(job.outcome).files["trace"]).read_bytes())
    assert [point["iteration"] for point in points] == list(range(1, job.progress.iteration + 1))


def test_progress_and_trace_of_a_failed_job_outlast_redis(
    store: Store, context: WorkerContext, redis: Redis, fake: list[Faked]
) -> None:
    def train(observer: Observer) -> Training:
        observer(TracePoint(Phase("mfn"), 7, 0.5, 0.5, 0.3, 0.1))
        raise MemoryError

    fake.append(train)
    id = attempted(store, context)
    redis.flushall()
    job = Jobs(store).get(id)
    assert (job.state, job.progress.iteration) == (JobState.FAILED, 7)
    assert [
        point["iteration"] for point in json.loads(store.local(there(job.outcome).files["trace"]).read_bytes())
    ] == [7]


def test_the_phase_of_a_job_that_has_succeeded_is_kept(store: Store, context: WorkerContext, fake: list[Faked]) -> None:
    fake.append(work_until(lambda: True))
    id = attempted(store, context)
    progress = Jobs(store).get(id).progress
    assert (progress.phase, progress.fraction) == ("mfn", 1.0)


def test_training_starts_from_the_model_it_was_told(store: Store, context: WorkerContext) -> None:
    attempted(store, context, algorithm="tsvm")
    first = Models(store).resolve("news")
    again = attempted(store, context, algorithm="tsvm", start=Publication(name="news", version=first.number))
    outcome = outcome_of(store, again)
    phases = {point["phase"] for point in json.loads(store.read(outcome.files["trace"].key))}
    assert phases == {"tsvm/stage=0"}, "a warm start needs no supervised solution and no stages of λ'"
    assert outcome.objective == pytest.approx(first.objective, rel=1e-2)


def test_training_is_told_how_labels_were_come_by(
    store: Store, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = noted(monkeypatch, core.train, "train", lambda task, _: task.drawn)
    base = make_dataset(store)
    Datasets(store).record_suggested(base.id, {40: Draw.CHOSEN})
    for dataset in (base, Datasets(store).relabel(base.id, {"d40": "no"}, {"d3": "random"})):
        attempted(store, context, dataset=dataset.id)
    assert given[0] is None
    assert {position: draw for position, draw in enumerate(given[1].tolist()) if draw} == {
        3: Draw.RANDOM,
        40: Draw.CHOSEN,
    }


def test_a_start_that_was_deleted_fails_the_job_by_name(store: Store, context: WorkerContext) -> None:
    id = attempted(store, context, algorithm="svm", start=Publication(name="gone", version=3))
    assert "gone" in failure_of(store, id).detail
