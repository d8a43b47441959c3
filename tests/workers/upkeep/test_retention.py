"""Deleting finished jobs, and what a policy keeps: what is in use is never touched, whatever else is asked."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from app.settings import GatewaySettings
from tests.workers.conftest import make_dataset, submit, success
from workers.contract import Job, JobState, Outcome, Publication
from workers.errors import JobNotFinished, NotFound
from workers.names import new_id
from workers.repositories.datasets import Datasets
from workers.repositories.jobs import Jobs
from workers.repositories.models import Models
from workers.store import Store
from workers.upkeep.retention import Keep, Policy, Retention, surplus

NONE = Keep(count=0)


@pytest.fixture
def store(any_store: Store) -> Store:
    """Both kinds: what is removed is told by prefixes, and a bucket has no folders."""
    return any_store


def retention(store: Store, **policy: Keep | float) -> Retention:
    return Retention(store, Datasets(store), Jobs(store), Models(store), Policy(**policy))  # type: ignore[arg-type]


def done(store: Store, name: str = "news", dataset: str | None = None, start: Publication | None = None) -> str:
    """A job that has succeeded as a worker leaves it, with the leavings of an attempt that died before."""
    id, jobs = submit(store, model=name, dataset=dataset, start=start), Jobs(store)
    jobs.begin(id, "w")
    upload(store, f"jobs/{id}/attempts/1/model.safetensors")
    jobs.begin(id, "w")
    made = success(store, 2)
    files = {kind: upload(store, f"jobs/{id}/attempts/2/{kind}", store.read(file.key)) for kind, file in made.files.items()}
    files |= {kind: upload(store, f"jobs/{id}/attempts/2/{kind}") for kind in ("trace", "labels")}
    jobs.finish(id, made.model_copy(update={"files": files}))
    jobs.publish(id)
    return id


def upload(store: Store, key: str, content: bytes = b"x" * 100) -> object:
    path = store.staging() / "file"
    path.write_bytes(content)
    return store.upload(key, path)


def failed(store: Store, seconds_ago: float = 0, dataset: str | None = None) -> str:
    id, jobs = submit(store, dataset=dataset), Jobs(store)
    jobs.begin(id, "w")
    jobs.finish(id, Outcome(state=JobState.FAILED, attempt=1, finished_at=datetime.now(UTC) - timedelta(seconds=seconds_ago)))
    jobs.close(id)
    return id


def ids(store: Store) -> set[str]:
    return {job.request.id for job in Jobs(store).every()}


@pytest.mark.parametrize("claimed", [False, True])
def test_a_job_that_is_not_over_is_not_deleted(store: Store, claimed: bool) -> None:
    id = submit(store)
    if claimed:
        Jobs(store).begin(id, "w")
    with pytest.raises(JobNotFinished, match="running" if claimed else "queued"):
        Jobs(store).delete(id)
    assert ids(store) == {id}


def test_a_deleted_job_leaves_its_model(store: Store) -> None:
    id, models = done(store), Models(store)
    Jobs(store).delete(id)
    for act in (Jobs(store).get, Jobs(store).delete):
        with pytest.raises(NotFound):
            act(id)
    assert all(store.exists(file.key) for file in models.resolve("news").files.values())
    assert store.children(f"jobs/{id}") == ["attempts"]
    assert sorted(store.children(f"jobs/{id}/attempts/2")) == ["model", "model_meta"]
    retention(store).collect()
    assert all(store.exists(file.key) for file in models.resolve("news").files.values())
    models.delete_version("news", 1)
    retention(store).collect()
    assert store.children("jobs") == []
    assert models.names() == ([], None)


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_deleted_job_without_a_model_leaves_nothing(store: Store, cancelled: bool) -> None:
    id = submit(store) if cancelled else failed(store)
    if cancelled:
        Jobs(store).cancel(id)
    Jobs(store).delete(id)
    assert (store.children("jobs"), store.children("open")) == ([], [])


def test_the_key_of_a_deleted_job_makes_a_new_one(store: Store) -> None:
    dataset, jobs = make_dataset(store).id, Jobs(store)

    def post() -> str:
        job, created = jobs.submit(dataset=dataset, model="m", algorithm="svm", options={}, seed=0, idempotency_key="k", fingerprint="f")
        assert created
        return job.request.id

    first = post()
    jobs.cancel(first)
    jobs.delete(first)
    assert jobs.made_by("k", "f") is None
    assert post() != first
    assert len(store.children("idempotency")) == 1


@pytest.mark.parametrize("step", range(1, 7))
def test_a_deletion_of_a_job_cut_short_is_completed_later(store: Store, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
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
    retention(store).collect()
    assert store.children("jobs") == [] or Jobs(store).get(id).state is JobState.FAILED


def test_without_a_policy_everything_stays_but_leftovers_of_long_ago(store: Store) -> None:
    ids_before = {done(store), done(store), failed(store, 90_000), submit(store)}
    (old,) = [job.request.id for job in Jobs(store).every() if job.state is JobState.FAILED]
    fresh = failed(store, 80_000)
    for id in (old, fresh):
        upload(store, f"jobs/{id}/attempts/1/labels.ndjson")
    assert not any(retention(store).collect())
    assert ids(store) == ids_before | {fresh}
    assert store.children(f"jobs/{old}/attempts") == ["1.json"]
    assert store.children(f"jobs/{fresh}/attempts") == ["1", "1.json"]
    assert len(store.children("datasets")) == 5
    assert len(Models(store).versions("news")) == 2


def test_leftovers_go_and_what_the_outcome_names_stays(store: Store) -> None:
    id = done(store)
    retention(store, leftover_seconds=1e-9).collect()
    assert store.children(f"jobs/{id}/attempts") == ["1.json", "2", "2.json"]
    outcome = Jobs(store).get(id).outcome
    assert outcome is not None
    assert sorted(store.children(f"jobs/{id}/attempts/2")) == sorted(outcome.files)


def test_versions_that_something_names_stay(store: Store) -> None:
    for _ in range(6):
        done(store)
    models = Models(store)
    models.set_alias("news", "live", 2)
    starting = submit(store, start=Publication(name="news", version=3))
    collected = retention(store, versions=NONE).collect()
    assert [version.number for version in models.versions("news")] == [2, 3, 6]
    assert collected.versions == ["news/5", "news/4", "news/1"]
    Jobs(store).cancel(starting)
    assert retention(store, versions=Keep(count=1)).collect().versions == ["news/3"]
    assert models.aliases("news") == {"live": 2}


def test_datasets_that_something_names_stay(store: Store) -> None:
    of_a_version, of_a_job, of_a_failure, unused = (make_dataset(store).id for _ in range(4))
    done(store, dataset=of_a_version)
    id = submit(store, dataset=of_a_job)
    failed(store, dataset=of_a_failure)
    relabeled = Datasets(store).relabel(unused, {"d1": None})
    assert set(retention(store, datasets=NONE).collect().datasets) == {of_a_failure, unused, relabeled.id}
    assert set(store.children("datasets")) == {of_a_version, of_a_job}
    Jobs(store).cancel(id)
    assert retention(store, datasets=NONE, versions=NONE).collect().datasets == [of_a_job]


def test_a_dataset_of_which_others_share_the_documents_keeps_them(store: Store) -> None:
    base = make_dataset(store).id
    changed = Datasets(store).relabel(base, {"d1": None}).id
    done(store, dataset=changed)
    assert retention(store, datasets=NONE).collect().datasets == [base]
    assert len(Datasets(store).open(changed).class_indices) == 60


def test_unfinished_jobs_stay(store: Store) -> None:
    running, queued, over = submit(store), submit(store), failed(store)
    Jobs(store).begin(running, "w")
    assert retention(store, jobs=NONE).collect().jobs == [over]
    assert ids(store) == {running, queued}


def test_a_job_ages_from_its_end(store: Store) -> None:
    old, young = failed(store, 100), failed(store, 10)
    assert retention(store, jobs=Keep(seconds=50)).collect().jobs == [old]
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


def test_a_job_that_is_just_being_stored_is_not_taken_for_the_rest_of_a_deleted_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is seen before its request is: whatever happens then, an accepted job stays."""
    made: list[str] = []
    dataset, children, get = make_dataset(store).id, type(store).children, Jobs.get

    def seen(self: Store, prefix: str) -> list[str]:
        return [*children(self, prefix), *(["job-" + "0" * 24] if prefix == "jobs" and not made else [])]

    def stored_meanwhile(self: Jobs, id: str) -> Job:
        if not made and id == "job-" + "0" * 24:
            monkeypatch.setattr("workers.repositories.jobs.new_id", lambda prefix: id)
            made.append(submit(store, dataset=dataset))
            raise NotFound("job", id)
        return get(self, id)

    monkeypatch.setattr(type(store), "children", seen)
    monkeypatch.setattr(Jobs, "get", stored_meanwhile)
    retention(store).collect()
    assert get(Jobs(store), made[0]).state is JobState.QUEUED


def test_what_a_deleted_job_has_left_goes_and_a_job_whose_request_is_still_to_come_keeps_all(store: Store) -> None:
    deleted, coming = new_id("job"), new_id("job")
    for id in (deleted, coming):
        upload(store, f"jobs/{id}/attempts/1/labels")
    store.create(f"open/{coming}", b"")
    retention(store).collect()
    assert store.children(f"jobs/{deleted}") == []
    assert store.exists(f"jobs/{coming}/attempts/1/labels")
