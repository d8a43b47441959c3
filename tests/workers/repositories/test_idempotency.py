"""Idempotency keys: one job a key, whatever comes in between, and a key that is free again belongs to the next."""

from typing import Any

import pytest

from tests.workers.conftest import killed_at, make_dataset
from workers.contract import Job
from workers.errors import IdempotencyConflict, NotFound
from workers.repositories.datasets import Datasets
from workers.repositories.idempotency import Claim, digest_of
from workers.repositories.jobs import Jobs
from workers.store import Store, records


def test_a_request_that_died_after_taking_its_key_is_completed_by_the_next(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make_dataset(store).id

    def post() -> tuple[str, bool]:
        job, created = Jobs(store).submit(dataset=dataset, model="m", algorithm="svm", options={}, seed=0, idempotency_key="k", fingerprint="f")
        return job.request.id, created

    with killed_at(store, monkeypatch, "create", "request.json"):
        post()
    assert [job.request.id for job in Jobs(store).unfinished()] == []
    id, created = post()
    assert created
    assert [job.request.id for job in Jobs(store).unfinished()] == [id]


def test_a_key_stands_for_its_job_when_the_dataset_is_gone(store: Store) -> None:
    dataset, jobs = make_dataset(store).id, Jobs(store)
    assert jobs.find_by_idempotency_key("k", None, "f") is None
    job, _ = jobs.submit(dataset=dataset, model="m", algorithm="svm", options={}, seed=0, idempotency_key="k", fingerprint="f")
    jobs.cancel(job.request.id)
    Datasets(store).delete(dataset)
    again = jobs.find_by_idempotency_key("k", None, "f")
    assert again is not None
    assert again.request == job.request
    with pytest.raises(IdempotencyConflict):
        jobs.find_by_idempotency_key("k", None, "other")


def test_the_deletion_of_a_job_that_was_refused_leaves_its_key_to_the_next(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, create = make_dataset(store).id, make_dataset(store).id, type(store).create

    def post(dataset: str) -> tuple[Job, bool]:
        return Jobs(store).submit(dataset=dataset, model="m", algorithm="svm", options={}, seed=0, idempotency_key="k", fingerprint="f", caller=None)

    def overtaken(self: Store, key: str, data: bytes) -> bool:
        if key.endswith("request.json"):
            Datasets(store).delete(first)
        return create(self, key, data)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "create", overtaken)
        with pytest.raises(NotFound):
            post(first)
    (refused,) = store.children("jobs")
    job, _ = post(second)
    Jobs(store).delete(refused)
    assert post(second)[0].request.id == job.request.id


def test_a_job_that_is_deleted_while_its_request_is_repeated_is_not_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its id it would run, and be published, twice."""
    dataset, exists = make_dataset(store).id, type(store).exists

    def post() -> tuple[Job, bool]:
        return Jobs(store).submit(dataset=dataset, model="m", algorithm="svm", options={}, seed=0, idempotency_key="k", fingerprint="f")

    job, _ = post()
    Jobs(store).cancel(job.request.id)

    def late(self: Store, key: str) -> bool:
        if key == f"jobs/{job.request.id}/request.json":
            monkeypatch.setattr(type(store), "exists", exists)
            Jobs(store).delete(job.request.id)
        return exists(self, key)

    monkeypatch.setattr(type(store), "exists", late)
    again, created = post()
    assert created
    assert again.request.id != job.request.id
    assert post()[0].request.id == again.request.id
    assert store.children("jobs") == [again.request.id]


def test_a_key_is_free_again_after_a_request_for_a_dataset_that_is_not_there(store: Store) -> None:
    with pytest.raises(NotFound):
        Jobs(store).submit(
            dataset="ds-000000000000000000000000", model="m", algorithm="svm", options={}, seed=0, idempotency_key="k", fingerprint="first"
        )
    assert store.children("idempotency") == []
    dataset = make_dataset(store).id
    _, created = Jobs(store).submit(dataset=dataset, model="m", algorithm="svm", options={}, seed=0, idempotency_key="k", fingerprint="second")
    assert created


def submit_by(store: Store, caller: str | None, **fields: Any) -> str:
    job, _ = Jobs(store).submit(dataset=make_dataset(store).id, model="m", algorithm="svm", options={}, seed=0, caller=caller, **fields)
    return job.request.id


def test_callers_choose_their_idempotency_keys_apart(store: Store) -> None:
    ids = {caller: submit_by(store, caller, idempotency_key="k", fingerprint=f"of {caller}") for caller in (None, "key-a", "key-b")}
    assert len(set(ids.values())) == 3
    jobs = Jobs(store)
    for caller, id in ids.items():
        found = jobs.find_by_idempotency_key("k", caller, f"of {caller}")
        assert found is not None
        assert found.request.id == id
        with pytest.raises(IdempotencyConflict):
            jobs.find_by_idempotency_key("k", caller, "another")
        jobs.cancel(id)
        jobs.delete(id)
        assert jobs.find_by_idempotency_key("k", caller, "another") is None


def test_a_key_of_an_earlier_version_is_its_callers(store: Store) -> None:
    """Then the keys of all callers were together."""
    id = submit_by(store, "key-a")
    records.create(store, f"idempotency/{digest_of('k', None)}.json", Claim(job=id, fingerprint="f"))
    jobs = Jobs(store)
    found = jobs.find_by_idempotency_key("k", "key-a", "f")
    assert found is not None
    assert found.request.id == id
    assert jobs.find_by_idempotency_key("k", "key-b", "f") is None
    assert jobs.find_by_idempotency_key("k", None, "f") is None
