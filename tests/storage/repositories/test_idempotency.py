"""Idempotency keys: one job a key, whatever comes in between, until long after its deletion."""

from types import SimpleNamespace
from typing import Any

import pytest

from storage.errors import IdempotencyConflict, JobDeleted, NotFound
from storage.process.settings import Settings
from storage.records import Job, JobDraft, JobState
from storage.repositories.datasets import Datasets
from storage.repositories.idempotency import IdempotencyKey
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store, json_records
from storage.upkeep.cleanup import GarbageCollector
from tests.calls import ending, meanwhile
from tests.stores import killed_at, make_dataset
from tests.there import there
from workers.worker.attempt import Attempts


def test_a_request_that_died_after_taking_its_key_is_completed_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch, dataset: str
) -> None:

    def post() -> tuple[str, bool]:
        job, created = Jobs(store).create(
            JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey("k", None, "f")
        )
        return job.request.id, created

    with killed_at(store, monkeypatch, "create", "request.json"):
        post()
    assert [job.request.id for job in Jobs(store).unfinished()] == []
    id, created = post()
    assert created
    assert [job.request.id for job in Jobs(store).unfinished()] == [id]


def test_a_job_that_was_refused_when_it_was_stored_keeps_its_key(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = make_dataset(store).id, make_dataset(store).id

    def post(dataset: str) -> tuple[Job, bool]:
        return Jobs(store).create(JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey("k", None, "f"))

    meanwhile(monkeypatch, type(store), "create", lambda: Datasets(store).delete(first), where=ending("request.json"))
    with pytest.raises(NotFound):
        post(first)
    (refused,) = store.children("jobs")
    job, created = post(second)
    assert (job.request.id, job.state, created) == (refused, JobState.FAILED, False)
    Jobs(store).delete(refused)
    with pytest.raises(JobDeleted):
        post(second)


def test_a_job_that_is_deleted_while_its_request_is_repeated_is_not_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, dataset: str
) -> None:
    """Under its id it would run, and be published, twice."""

    def post() -> tuple[Job, bool]:
        return Jobs(store).create(JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey("k", None, "f"))

    job, _ = post()
    Jobs(store).cancel(job.request.id)
    request = f"jobs/{job.request.id}/request.json"
    meanwhile(monkeypatch, type(store), "exists", lambda: Jobs(store).delete(job.request.id), where=ending(request))
    with pytest.raises(JobDeleted, match=job.request.id):
        post()
    assert store.children("jobs") == []


@pytest.mark.parametrize("moment", ["idempotency/", "open/", "/request.json"])
def test_a_request_that_hangs_until_its_job_was_done_and_deleted_elsewhere_makes_none(
    store: Store, monkeypatch: pytest.MonkeyPatch, moment: str, dataset: str
) -> None:
    """Its client has asked another gateway meanwhile, got the job, and deleted it. Nobody waits for another."""

    def post() -> Job:
        return Jobs(store).create(
            JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey("k", None, "f")
        )[0]

    def do_and_delete() -> None:
        done = post().request.id
        Jobs(store).cancel(done)
        Jobs(store).delete(done)

    meanwhile(monkeypatch, type(store), "create", do_and_delete, where=lambda _, key, data: moment in key)
    with pytest.raises(JobDeleted):
        post()
    assert [*Jobs(store).every(), *Jobs(store).open_jobs()] == []
    with pytest.raises(JobDeleted):
        post()


@pytest.mark.parametrize("who", ["worker", "garbage collection"])
def test_a_job_that_was_made_again_after_its_deletion_is_withdrawn(store: Store, who: str) -> None:
    """The process of the late request died before it looked whether the job was deleted."""
    id, jobs = submit_by(store, None), Jobs(store)
    request = jobs.get(id).request
    jobs.cancel(id)
    jobs.delete(id)
    store.create(f"open/{id}", b"")
    json_records.create(store, f"jobs/{id}/request.json", request)
    assert [job.request.id for job in jobs.unfinished()] == [id]
    if who == "worker":
        context: Any = SimpleNamespace(store=store, settings=Settings(), redis_state=SimpleNamespace(leases=None))
        Attempts(context).run(id)
    else:
        GarbageCollector(store, jobs, Models(store)).remove_abandoned()
    assert [*jobs.every(), *jobs.open_jobs()] == []


def test_a_key_is_free_again_after_a_request_for_a_dataset_that_is_not_there(store: Store, dataset: str) -> None:
    with pytest.raises(NotFound):
        Jobs(store).create(
            JobDraft(dataset="ds-000000000000000000000000", model="m", algorithm="svm"),
            IdempotencyKey("k", None, "first"),
        )
    assert store.children("idempotency") == []
    _, created = Jobs(store).create(
        JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey("k", None, "second")
    )
    assert created


def submit_by(store: Store, caller: str | None, fingerprint: str = "f") -> str:
    draft = JobDraft(dataset=make_dataset(store).id, model="m", algorithm="svm", caller=caller)
    return Jobs(store).create(draft, IdempotencyKey("k", caller, fingerprint))[0].request.id


def test_callers_choose_their_idempotency_keys_apart(store: Store, jobs: Jobs) -> None:
    ids = {caller: submit_by(store, caller, f"of {caller}") for caller in (None, "key-a", "key-b")}
    assert len(set(ids.values())) == 3
    for caller, id in ids.items():
        found = there(jobs.find_by_idempotency_key(IdempotencyKey("k", caller, f"of {caller}")))
        assert found.request.id == id
        with pytest.raises(IdempotencyConflict):
            jobs.find_by_idempotency_key(IdempotencyKey("k", caller, "another"))
        jobs.cancel(id)
        jobs.delete(id)
        assert jobs.find_by_idempotency_key(IdempotencyKey("k", caller, "another")) is None
