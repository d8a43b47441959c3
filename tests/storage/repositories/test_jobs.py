"""Jobs: their state by their records; every step may be repeated, raced or cut short."""

import threading
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from storage.errors import Conflict, InvalidName, NotFound, StoreDamaged
from storage.names import new_id
from storage.records import Job, JobDraft, JobState, Outcome, Version
from storage.repositories.datasets import Datasets
from storage.repositories.idempotency import IdempotencyKey
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.calls import ending, meanwhile
from tests.stores import killed_at, make_dataset, submit, success
from tests.there import there
from tests.waiting import at_once


def state(store: Store, id: str) -> JobState:
    return Jobs(store).get(id).state


def failure(attempt: int = 1) -> Outcome:
    return Outcome(state=JobState.FAILED, attempt=attempt, finished_at=datetime.now(UTC))


def test_a_job_goes_from_queued_to_succeeded(store: Store) -> None:
    id, jobs = submit(store, options={"lambda": 0.01}), Jobs(store)
    assert state(store, id) is JobState.QUEUED
    attempt = there(jobs.claim_attempt(id, "w"))
    job = jobs.get(id)
    assert (job.state, job.attempt, job.started_at) == (JobState.RUNNING, 1, attempt.started_at)
    assert jobs.record_outcome(id, success(store))
    assert state(store, id) is JobState.RUNNING, "a success counts when it is published"
    version = jobs.publish(id)
    job = jobs.get(id)
    assert version is not None
    assert (job.state, job.version, job.progress.fraction) == (JobState.SUCCEEDED, 1, 1.0)
    assert (version.options, version.classes, version.n_features, version.job) == (
        {"lambda": 0.01},
        ["no", "yes"],
        21,
        id,
    )
    assert list(jobs.unfinished_ids()) == []


def test_requests_that_are_refused_leave_nothing(store: Store) -> None:
    with pytest.raises(NotFound):
        submit(store, dataset="ds-000000000000000000000000")
    with pytest.raises(InvalidName):
        submit(store, model="a/b")
    assert store.children("jobs") == []
    assert store.children("open") == []


@pytest.mark.parametrize("id", ["", "x", "../jobs", "job-000000000000000000000000"])
def test_unknown_jobs(store: Store, id: str) -> None:
    for act in (Jobs(store).get, Jobs(store).cancel):
        with pytest.raises(NotFound):
            act(id)


def test_an_idempotency_key_stands_for_one_job(store: Store, dataset: str) -> None:

    def post(_: int) -> tuple[str, bool]:
        job, created = Jobs(store).create(
            JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey("key", None, "same")
        )
        return job.request.id, created

    results = at_once(6, post)
    assert len({id for id, _ in results}) == 1
    assert sum(created for _, created in results) == 1
    assert len(store.children("jobs")) == 1


@pytest.mark.parametrize("moment", ["before the job's records", "after the job's records"])
def test_a_job_never_loses_its_dataset_to_a_deletion(
    store: Store, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    dataset, late = make_dataset(store).id, moment.startswith("after")

    def delete() -> None:
        with pytest.raises(Conflict) if late else nullcontext():
            Datasets(store).delete(dataset)

    meanwhile(monkeypatch, type(store), "create", delete, where=ending("request.json"), after=late)
    if not late:
        with pytest.raises(NotFound, match="dataset"):
            submit(store, dataset=dataset)
        (id,) = store.children("jobs")
        assert state(store, id) is JobState.FAILED
    else:
        assert state(store, submit(store, dataset=dataset)) is JobState.QUEUED
        assert Datasets(store).get(dataset).id == dataset
    assert store.children("open") == (store.children("jobs") if late else [])


def test_a_deletion_that_has_looked_for_jobs_is_seen_by_the_next_job(
    store: Store, monkeypatch: pytest.MonkeyPatch, dataset: str
) -> None:

    def refuse() -> None:
        with pytest.raises(NotFound, match="dataset"):
            submit(store, dataset=dataset)

    meanwhile(monkeypatch, Jobs, "unfinished_job_of", refuse, after=True)
    Datasets(store).delete(dataset)
    assert store.children("open") == []
    assert store.children("datasets") == []


def test_a_job_that_is_being_deleted_is_never_shown_as_unfinished(
    store: Store, id: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.cancel(id)
    meanwhile(monkeypatch, type(store), "read", lambda: Jobs(store).delete(id), after=True)
    with pytest.raises(NotFound):
        jobs.get(id)


def test_an_outcome_of_a_job_that_was_deleted_meanwhile_is_nobodys(
    store: Store, id: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.cancel(id)
    meanwhile(monkeypatch, type(store), "read", lambda: Jobs(store).delete(id), where=ending("outcome.json"))
    with pytest.raises(NotFound):
        jobs.record_outcome(id, failure())


def test_a_job_that_has_ended_when_its_submission_looks_for_deletions_was_accepted(
    store: Store, monkeypatch: pytest.MonkeyPatch, dataset: str
) -> None:
    """Else its key were free, and the same request made it twice."""

    def end() -> None:
        (id,) = store.children("open")
        Jobs(store).cancel(id)
        Datasets(store).delete(dataset)

    def post() -> tuple[Job, bool]:
        return Jobs(store).create(JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey("k", None, "f"))

    meanwhile(monkeypatch, type(store), "create", end, where=ending("request.json"), after=True)
    job, created = post()
    assert (job.state, created) == (JobState.CANCELLED, True)
    again, created = post()
    assert (again.request.id, created) == (job.request.id, False)


def test_a_damaged_request_keeps_what_it_names(store: Store, dataset: str) -> None:
    id, other = submit(store, dataset=dataset), make_dataset(store).id
    request = store.read(f"jobs/{id}/request.json")
    store.replace(f"jobs/{id}/request.json", request.replace(b'"seed":0', b'"seed":"zero"'))
    with pytest.raises(StoreDamaged, match=id):
        Datasets(store).delete(dataset)
    assert store.children("deleting") == []
    Datasets(store).delete(other)
    store.create(f"jobs/{id}/outcome.json", b"{}")
    Datasets(store).delete(dataset)


def test_records_that_say_more_than_this_release_knows_are_read(store: Store, dataset: str) -> None:
    """As a newer one beside it may store them, during an upgrade."""

    def grow(key: str) -> None:
        store.replace(key, store.read(key).rstrip().removesuffix(b"}") + b',"of_the_next_release":1}')

    id, jobs = submit(store, dataset=dataset), Jobs(store)
    grow(f"jobs/{id}/request.json")
    grow(f"datasets/{dataset}/manifest.json")
    jobs.claim_attempt(id, "w")
    grow(f"jobs/{id}/attempts/1.json")
    jobs.record_outcome(id, success(store))
    grow(f"jobs/{id}/outcome.json")
    jobs.publish(id)
    grow("models/news/versions/1.json")
    assert jobs.get(id).state is JobState.SUCCEEDED
    assert Models(store).resolve("news").job == id
    assert store.damage.found == {}
    relabeled = Datasets(store).relabel(dataset, {})
    assert b'"of_the_next_release":1' in store.read(f"datasets/{relabeled.id}/manifest.json")


@pytest.mark.parametrize("published", [False, True])
def test_what_has_succeeded_is_not_cancelled(store: Store, id: str, jobs: Jobs, published: bool) -> None:
    jobs.claim_attempt(id, "w")
    jobs.record_outcome(id, success(store))
    if published:
        jobs.publish(id)
    with pytest.raises(Conflict, match="nothing to cancel"):
        jobs.cancel(id)
    jobs.publish(id)
    assert state(store, id) is JobState.SUCCEEDED


def test_one_worker_claims_an_attempt(store: Store, id: str) -> None:
    attempts = at_once(6, lambda number: Jobs(store).claim_attempt(id, f"w{number}", 1))
    assert sum(attempt is not None for attempt in attempts) == 1
    assert Jobs(store).claim_attempt(id, "late", 1) is None
    assert there(Jobs(store).claim_attempt(id, "again", 2)).number == 2


def test_the_first_outcome_counts(store: Store, id: str, jobs: Jobs) -> None:
    jobs.claim_attempt(id, "w")
    outcomes = [failure(), success(store)]
    won = at_once(2, lambda number: Jobs(store).record_outcome(id, outcomes[number]))
    assert sorted(won) == [False, True]
    assert jobs.get(id).outcome == outcomes[won.index(True)]


def test_however_many_publish_there_is_one_version(store: Store) -> None:
    ids = [submit(store) for _ in range(4)]
    for id in ids:
        Jobs(store).claim_attempt(id, "w")
        Jobs(store).record_outcome(id, success(store))
    versions: list[Version] = at_once(12, lambda number: Jobs(store).publish(ids[number % 4]))
    published = Models(store).versions("news")
    assert [version.number for version in published] == [1, 2, 3, 4]
    assert {version.job for version in published} == set(ids)
    for number, version in enumerate(versions):
        assert version.job == ids[number % 4]
        assert version.number == Jobs(store).get(ids[number % 4]).version


def test_a_publication_cut_short_is_completed(store: Store, monkeypatch: pytest.MonkeyPatch, id: str) -> None:
    Jobs(store).claim_attempt(id, "w")
    Jobs(store).record_outcome(id, success(store))
    with killed_at(store, monkeypatch, "create", "published.json"):
        Jobs(store).publish(id)
    assert state(store, id) is JobState.RUNNING
    assert there(Jobs(store).publish(id)).number == 1
    assert state(store, id) is JobState.SUCCEEDED


def test_only_successes_are_published(store: Store, id: str) -> None:
    assert Jobs(store).publish(id) is None
    Jobs(store).record_outcome(id, failure())
    assert Jobs(store).publish(id) is None
    assert Models(store).names() == ([], None)


def test_deaths_are_attempts_that_were_not_handed_back(id: str, jobs: Jobs) -> None:
    for number in (1, 2, 3):
        jobs.claim_attempt(id, "w")
        assert jobs.deaths(id) == number - (number > 1)
        if number == 1:
            jobs.record_hand_back(id, 1)
    assert jobs.get(id).attempt == 3


def test_identifiers_sort_by_age() -> None:
    ids = []
    for _ in range(3):
        ids.append(new_id("job"))
        threading.Event().wait(0.003)
    assert ids == sorted(ids)
    assert len({new_id("job") for _ in range(1000)}) == 1000
