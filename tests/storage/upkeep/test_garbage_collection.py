"""Garbage collection removes abandoned things, and never things in use, whatever happens meanwhile."""

import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from storage.errors import NotFound, StoreDamaged, StoreUnavailable
from storage.names import new_id
from storage.records import Job, JobState, Publication
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from storage.upkeep.cleanup import GarbageCollector
from tests.storage.upkeep.finished_jobs import done, failed, ids, upload
from tests.stores import killed_at, later, make_dataset, outcome_of, submit


@pytest.fixture
def store(any_store: Store) -> Store:
    """Stores of both kinds: removal goes by prefixes, and a bucket has no folders."""
    return any_store


def collect_garbage(store: Store, **settings: float) -> None:
    GarbageCollector(store, Jobs(store), Models(store), **settings).remove_abandoned()


def test_a_deleted_job_leaves_its_model(store: Store) -> None:
    id, models = done(store), Models(store)
    Jobs(store).delete(id)
    for act in (Jobs(store).get, Jobs(store).delete):
        with pytest.raises(NotFound):
            act(id)
    assert all(store.exists(file.key) for file in models.resolve("news").files.values())
    assert store.children(f"jobs/{id}") == ["attempts"]
    assert sorted(store.children(f"jobs/{id}/attempts/2")) == ["model", "model_meta"]
    collect_garbage(store)
    assert all(store.exists(file.key) for file in models.resolve("news").files.values())
    models.delete_version("news", 1)
    collect_garbage(store)
    assert store.children("jobs") == []
    assert models.names() == ([], None)


@pytest.mark.parametrize("deleted", ["before", "meanwhile"])
def test_a_job_that_is_deleted_leaves_its_files_while_the_deletion_of_their_version_may_be_undone(
    store: Store, deleted: str
) -> None:
    id, models, looked = done(store), Models(store), list[bool]()
    if deleted == "before":
        Jobs(store).delete(id)

    def needed(name: str, numbers: Collection[int]) -> None:
        looked.append(Models(store).deleted(name, 1))
        if looked[-1]:
            if deleted == "meanwhile":
                Jobs(store).delete(id)
            collect_garbage(store)
            raise StoreUnavailable("nobody knows whether a job needs it")

    with pytest.raises(StoreUnavailable):
        models.delete_version("news", 1, needed)
    assert looked == [False, True]
    assert all(store.exists(file.key) for file in models.resolve("news").files.values())
    models.delete_version("news", 1)
    collect_garbage(store)
    assert store.children("jobs") == []


@pytest.mark.parametrize("named_by", ["alias", "job"])
def test_a_refused_deletion_that_could_not_be_undone_is_undone_later(
    store: Store, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    done(store)
    if named_by == "alias":
        Models(store).set_alias("news", "live", 1)
    else:
        submit(store, start=Publication(name="news", version=1))
    Models(store)._mark_deleted("news", 1)
    garbage = GarbageCollector(store, Jobs(store), Models(store))
    garbage.remove_abandoned()
    assert Models(store).deleted("news", 1)
    with later(monkeypatch, 61):
        garbage.remove_abandoned()
    assert all(store.exists(file.key) for file in Models(store).version("news", 1).files.values())


def test_a_deleted_version_that_cannot_be_read_keeps_no_leftovers(store: Store) -> None:
    for id in (done(store), failed(store)):
        Jobs(store).delete(id)
    store.replace("models/news/versions/1.json", b"{")
    upload(store, f"jobs/{new_id('job')}/attempts/1/labels")
    with pytest.raises(StoreDamaged):
        collect_garbage(store)
    assert len(store.children("jobs")) == 2, "any of these files may be those of the version"
    Models(store).delete_version("news", 1)
    collect_garbage(store)
    assert store.children("jobs") == []


@pytest.mark.parametrize("step", range(1, 7))
def test_a_deletion_of_a_job_cut_short_is_completed_later(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    id = failed(store)
    delete, count = type(store).delete, 0

    def dying(self: Store, prefix: str) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise KeyboardInterrupt
        delete(self, prefix)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "delete", dying)
        try:
            Jobs(store).delete(id)
        except KeyboardInterrupt:
            pass
        else:
            assert step > 3
    collect_garbage(store)
    assert store.children("jobs") == [] or Jobs(store).get(id).state is JobState.FAILED


def test_everything_stays_but_leftovers_of_long_ago(store: Store) -> None:
    ids_before = {done(store), done(store), failed(store, 90_000), submit(store)}
    (old,) = [job.request.id for job in Jobs(store).every() if job.state is JobState.FAILED]
    fresh = failed(store, 80_000)
    for id in (old, fresh):
        upload(store, f"jobs/{id}/attempts/1/labels.ndjson")
    collect_garbage(store)
    assert ids(store) == ids_before | {fresh}
    assert store.children(f"jobs/{old}/attempts") == ["1.json"]
    assert store.children(f"jobs/{fresh}/attempts") == ["1", "1.json"]
    assert len(store.children("datasets")) == 5
    assert len(Models(store).versions("news")) == 2


def test_leftovers_go_and_what_the_outcome_names_stays(store: Store) -> None:
    id = done(store)
    collect_garbage(store, leftover_seconds=1e-9)
    assert store.children(f"jobs/{id}/attempts") == ["1.json", "2", "2.json"]
    outcome = outcome_of(store, id)
    assert sorted(store.children(f"jobs/{id}/attempts/2")) == sorted(outcome.files)


def test_a_job_that_is_just_being_stored_is_not_taken_for_the_rest_of_a_deleted_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is listed before its request exists: whatever happens then, an accepted job stays."""
    made: list[str] = []
    dataset, children, get = make_dataset(store).id, type(store).children, Jobs.get

    def seen(self: Store, prefix: str) -> list[str]:
        return [*children(self, prefix), *(["job-" + "0" * 24] if prefix == "jobs" and not made else [])]

    def stored_meanwhile(self: Jobs, id: str) -> Job:
        if not made and id == "job-" + "0" * 24:
            monkeypatch.setattr("storage.repositories.jobs.new_id", lambda prefix: id)
            made.append(submit(store, dataset=dataset))
            raise NotFound("job", id)
        return get(self, id)

    monkeypatch.setattr(type(store), "children", seen)
    monkeypatch.setattr(Jobs, "get", stored_meanwhile)
    collect_garbage(store)
    assert get(Jobs(store), made[0]).state is JobState.QUEUED


def test_what_a_deleted_job_has_left_goes_and_a_job_whose_request_is_still_to_come_keeps_all(store: Store) -> None:
    deleted, coming = new_id("job"), new_id("job")
    for id in (deleted, coming):
        upload(store, f"jobs/{id}/attempts/1/labels")
    store.create(f"open/{coming}", b"")
    collect_garbage(store)
    assert store.children(f"jobs/{deleted}") == []
    assert store.exists(f"jobs/{coming}/attempts/1/labels")


@pytest.mark.parametrize("clock", ["right", "set back"])
def test_the_rest_of_a_job_that_had_no_leftovers_before_its_deletion_goes_within_a_day(
    store: Store, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    id = failed(store, 90_000)
    garbage = GarbageCollector(store, Jobs(store), Models(store))
    garbage.remove_abandoned()
    with killed_at(store, monkeypatch, "delete", f"jobs/{id}"):
        Jobs(store).delete(id)
    passed = time.monotonic() + 86_401
    then = datetime.now(UTC) + timedelta(seconds=86_401 if clock == "right" else -3600)
    monkeypatch.setattr("storage.upkeep.cleanup.time", SimpleNamespace(monotonic=lambda: passed))
    monkeypatch.setattr("storage.upkeep.cleanup.datetime", SimpleNamespace(now=lambda zone: then))
    garbage.remove_abandoned()
    assert store.children("jobs") == []
