"""Calls of the store do not grow with backlog and history."""

from collections.abc import Callable
from itertools import chain
from threading import Barrier

import pytest

from storage.records import JobState
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from storage.store.folder import FolderStore
from storage.store.json_records import THREADS, in_parallel
from tests.calls import noted
from tests.stores import make_dataset, submit, success
from tests.there import there
from tests.waiting import SOON

MANY = 40


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], list[str]]:
    """Keys that are read, or looked for, while something is done."""

    def reads(act: Callable[[], object]) -> list[str]:
        with monkeypatch.context() as patch:
            found = [noted(patch, FolderStore, name, lambda _, key: key) for name in ("read", "exists")]
            act()
        return [*chain(*found)]

    return reads


Reads = Callable[[Callable[[], object]], list[str]]


def test_a_deletion_reads_the_jobs_that_it_concerns(store: Store, reads: Reads, jobs: Jobs) -> None:
    busy, free = make_dataset(store).id, make_dataset(store).id
    for _ in range(MANY):
        submit(store, dataset=busy)
    datasets = Datasets(store, jobs=jobs)
    assert len(reads(jobs.unfinished_requests)) == MANY, "each is read once"
    assert [key for key in reads(lambda: datasets.delete(free)) if key.startswith("jobs/")] == []
    new = submit(store, dataset=busy)
    assert {key.split("/")[1] for key in reads(jobs.unfinished_requests)} == {new}


def test_jobs_that_wait_are_counted_and_not_read(store: Store, reads: Reads, dataset: str, jobs: Jobs) -> None:
    *waiting, runs = sorted(submit(store, dataset=dataset) for _ in range(MANY))
    jobs.claim_attempt(runs, "w")
    assert jobs.states(set(waiting)) == {JobState.QUEUED: MANY - 1, JobState.RUNNING: 1}
    assert {key.split("/")[1] for key in reads(lambda: jobs.states(set(waiting)))} == {runs}


def test_a_publication_reads_the_versions_since_its_outcome(store: Store, reads: Reads) -> None:
    dataset, jobs = make_dataset(store).id, Jobs(store)

    def succeeded(versions_before: int) -> str:
        id = submit(store, dataset=dataset)
        jobs.claim_attempt(id, "w")
        jobs.record_outcome(id, success(store).model_copy(update={"versions_before": versions_before}))
        return id

    for _ in range(MANY):
        jobs.publish(succeeded(0))
    slow, quick = (succeeded(Models(store).last_number("news")) for _ in range(2))
    assert jobs.publish(quick) is not None
    found = reads(lambda: Jobs(store).publish(slow))
    assert sorted(key for key in found if key.startswith("models/")) == [
        f"models/news/versions/{number}.json" for number in (MANY + 1, MANY + 2)
    ]
    assert (jobs.get(quick).version, jobs.get(slow).version) == (MANY + 1, MANY + 2)
    assert there(jobs.publish(slow)).number == MANY + 2, "a job has one version"


def test_the_outcome_of_an_attempt_says_how_many_versions_there_were(store: Store, id: str, jobs: Jobs) -> None:
    """Outcomes of earlier releases do not: then all versions are read."""
    jobs.claim_attempt(id, "w")
    jobs.record_outcome(id, success(store))
    assert there(jobs.outcome(id)).versions_before == 0
    assert jobs.publish(id) == jobs.publish(id)


def test_many_calls_are_under_way_at_a_time() -> None:
    together = Barrier(THREADS)
    assert sorted(in_parallel(lambda number: together.wait(SOON), range(THREADS))) == list(range(THREADS))


def test_what_is_done_at_the_same_time_comes_in_order_and_fails_as_it_would() -> None:
    assert list(in_parallel(str, range(100))) == [str(number) for number in range(100)]
    assert list(in_parallel(str, range(5000))) == [str(number) for number in range(5000)]
    assert list(in_parallel(str, [])) == []
    with pytest.raises(ZeroDivisionError):
        list(in_parallel(lambda number: 1 / number, [1, 0, 2]))
