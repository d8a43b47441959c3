"""Garbage collection and retention remove what is abandoned or too old, and never things in use, whatever happens."""

import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from app.settings import GatewaySettings
from storage.errors import JobDeleted, NotFound, StoreDamaged, StoreUnavailable
from storage.names import new_id
from storage.records import Comparison, Job, JobDraft, JobState, Publication
from storage.repositories.datasets import Datasets
from storage.repositories.idempotency import IdempotencyKey
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from storage.upkeep.cleanup import GarbageCollector, Keep, Policy, Removed, remove_expired, surplus
from tests.storage.upkeep.finished_jobs import done, failed, ids, upload
from tests.stores import killed_at, later, make_dataset, outcome_of, submit, success


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


NONE = Keep(count=0)


def retain(store: Store, **policy: Keep) -> Removed:
    return remove_expired(Datasets(store), Jobs(store), Models(store), Policy(**policy))


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_deleted_job_without_a_model_leaves_nothing(store: Store, cancelled: bool) -> None:
    id = submit(store) if cancelled else failed(store)
    if cancelled:
        Jobs(store).cancel(id)
    Jobs(store).delete(id)
    assert (store.children("jobs"), store.children("open")) == ([], [])


def test_the_key_of_a_deleted_job_stays_its_own_for_a_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, jobs = make_dataset(store).id, Jobs(store)

    def post() -> str:
        job, created = jobs.create(
            JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey("k", None, "f")
        )
        assert created
        return job.request.id

    first = post()
    jobs.cancel(first)
    jobs.delete(first)
    assert jobs.find_by_idempotency_key(IdempotencyKey("k", None, "f")) is None
    garbage = GarbageCollector(store, jobs, Models(store))
    garbage.remove_abandoned()
    with pytest.raises(JobDeleted, match=first):
        post()
    with later(monkeypatch, 86_401):
        garbage.remove_abandoned()
    assert not store.exists("idempotency")
    assert post() != first


def test_versions_that_something_names_stay(store: Store, models: Models) -> None:
    for _ in range(6):
        done(store)
    models.set_alias("news", "live", 2)
    starting = submit(store, start=Publication(name="news", version=3))
    removed = retain(store, versions=NONE)
    assert [version.number for version in models.versions("news")] == [2, 3, 6]
    assert removed.versions == ["news/5", "news/4", "news/1"]
    Jobs(store).cancel(starting)
    assert retain(store, versions=Keep(count=1)).versions == ["news/3"]
    assert models.aliases("news") == {"live": 2}


def test_the_version_that_is_served_stays_though_it_is_not_the_newest(store: Store, models: Models) -> None:
    done(store)
    worse = Comparison(takes_over=False, why="it is worse", against=1)
    for _ in range(3):
        id = submit(store)
        Jobs(store).record_outcome(id, success(store).model_copy(update={"comparison": worse}))
        Jobs(store).publish(id)
    assert retain(store, versions=Keep(count=1)).versions == ["news/3", "news/2"]
    assert [version.number for version in models.versions("news")] == [1, 4]
    assert retain(store, versions=NONE).versions == ["news/4"]
    assert models.resolve("news").number == 1


def test_datasets_that_something_names_stay(store: Store) -> None:
    of_a_version, of_a_job, of_a_failure, unused = (make_dataset(store).id for _ in range(4))
    done(store, dataset=of_a_version)
    id = submit(store, dataset=of_a_job)
    failed(store, dataset=of_a_failure)
    relabeled = Datasets(store).relabel(unused, {"d1": None})
    assert set(retain(store, datasets=NONE).datasets) == {of_a_failure, unused, relabeled.id}
    assert set(store.children("datasets")) == {of_a_version, of_a_job}
    Jobs(store).cancel(id)
    assert retain(store, datasets=NONE, versions=NONE).datasets == [of_a_job]


def test_the_dataset_of_a_version_whose_deletion_may_be_undone_stays(store: Store, dataset: str) -> None:
    done(store, dataset=dataset)

    def needed(name: str, numbers: Collection[int]) -> None:
        if Models(store).deleted(name, 1):
            assert retain(store, datasets=NONE).datasets == []
            raise StoreUnavailable("nobody knows whether a job needs it")

    with pytest.raises(StoreUnavailable):
        Models(store).delete_version("news", 1, needed)
    assert store.children("datasets") == [dataset]
    Models(store).delete_version("news", 1)
    assert retain(store, datasets=NONE).datasets == [dataset]


def test_a_dataset_of_which_others_share_the_documents_keeps_them(store: Store) -> None:
    base = make_dataset(store).id
    changed = Datasets(store).relabel(base, {"d1": None}).id
    done(store, dataset=changed)
    assert retain(store, datasets=NONE).datasets == [base]
    assert len(Datasets(store).open(changed).class_indices) == 60


def test_unfinished_jobs_stay(store: Store) -> None:
    running, queued, over = submit(store), submit(store), failed(store)
    Jobs(store).claim_attempt(running, "w")
    assert retain(store, jobs=NONE).jobs == [over]
    assert ids(store) == {running, queued}


def test_without_a_policy_everything_stays(store: Store) -> None:
    there = {done(store), done(store), failed(store, 90_000), submit(store)}
    assert not any(retain(store))
    assert ids(store) == there
    assert len(store.children("datasets")) == 4
    assert len(Models(store).versions("news")) == 2


def test_a_job_ages_from_its_end(store: Store) -> None:
    old, young = failed(store, 100), failed(store, 10)
    assert retain(store, jobs=Keep(seconds=50)).jobs == [old]
    assert ids(store) == {young}


@pytest.mark.parametrize(
    ("keep", "gone"),
    [
        (Keep(), []),
        (Keep(count=3), ["d"]),
        (Keep(count=0), ["a", "b", "c", "d"]),
        (Keep(seconds=15), ["b", "c", "d"]),
        (Keep(bytes=30), ["c", "d"]),
        (Keep(bytes=29), ["b", "c", "d"]),
        (Keep(count=3, seconds=25, bytes=1000), ["c", "d"]),
    ],
)
def test_what_is_beyond_any_bound_goes(keep: Keep, gone: list[str]) -> None:
    now = datetime.now(UTC)
    entries = [(name, now - timedelta(seconds=10 * place), 10 * place) for place, name in enumerate("abcd", 1)]
    assert list(surplus(entries, keep, now)) == gone


def test_a_policy_is_told_by_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert GatewaySettings().retention_policy == Policy()
    monkeypatch.setenv("HALFMOON_KEEP_JOBS", '{"count": 3, "seconds": 60}')
    assert GatewaySettings().retention_policy == Policy(jobs=Keep(count=3, seconds=60))
    for wrong in ('{"cuont": 3}', '{"count": -1}', "3", '{"seconds": "NaN"}'):
        monkeypatch.setenv("HALFMOON_KEEP_JOBS", wrong)
        with pytest.raises(ValidationError, match="keep_jobs"):
            GatewaySettings()
