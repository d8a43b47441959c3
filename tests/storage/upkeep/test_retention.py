"""Deletion of finished jobs, and retention: things in use are never removed, whatever the policy."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from app.settings import GatewaySettings
from storage.errors import JobDeleted, StoreUnavailable
from storage.records import Comparison, JobDraft, Publication
from storage.repositories.datasets import Datasets
from storage.repositories.idempotency import IdempotencyKey
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from storage.upkeep.cleanup import GarbageCollector, Keep, Policy, Removed, remove_expired, surplus
from tests.storage.upkeep.finished_jobs import done, failed, ids
from tests.stores import later, make_dataset, submit, success

NONE = Keep(count=0)


@pytest.fixture
def store(any_store: Store) -> Store:
    """Stores of both kinds: removal goes by prefixes, and a bucket has no folders."""
    return any_store


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
        job, created = jobs.submit(
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


def test_versions_that_something_names_stay(store: Store) -> None:
    for _ in range(6):
        done(store)
    models = Models(store)
    models.set_alias("news", "live", 2)
    starting = submit(store, start=Publication(name="news", version=3))
    removed = retain(store, versions=NONE)
    assert [version.number for version in models.versions("news")] == [2, 3, 6]
    assert removed.versions == ["news/5", "news/4", "news/1"]
    Jobs(store).cancel(starting)
    assert retain(store, versions=Keep(count=1)).versions == ["news/3"]
    assert models.aliases("news") == {"live": 2}


def test_the_version_that_is_served_stays_though_it_is_not_the_newest(store: Store) -> None:
    done(store)
    worse = Comparison(takes_over=False, why="it is worse", against=1)
    for _ in range(3):
        id = submit(store)
        Jobs(store).record_outcome(id, success(store).model_copy(update={"comparison": worse}))
        Jobs(store).publish(id)
    models = Models(store)
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


def test_the_dataset_of_a_version_whose_deletion_may_be_undone_stays(store: Store) -> None:
    dataset = make_dataset(store).id
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
