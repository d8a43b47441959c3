"""Pages of jobs: the right ones in the right order, and few reads for them."""

import pytest

from storage.records import JobState
from storage.repositories import job_list as listing
from storage.repositories.job_list import JobList
from storage.repositories.jobs import Jobs
from storage.store import Store
from tests.calls import noted
from tests.stores import make_dataset, submit, success


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the jobs that were read."""
    return noted(monkeypatch, Jobs, "get", lambda _, id: id)


def test_what_is_over_is_listed_as_such(store: Store, id: str, jobs: Jobs) -> None:
    """What is not over when it is first read may have changed."""
    pages = JobList(jobs)
    jobs.claim_attempt(id, "w")
    assert [job.request.id for job in pages.page(JobState.RUNNING)[0]] == [id]
    jobs.record_outcome(id, success(store))
    jobs.publish(id)
    assert pages.page(JobState.RUNNING) == ([], None)
    assert [job.request.id for job in pages.page(JobState.SUCCEEDED)[0]] == [id]


def test_all_jobs_are_listed_now_and_then_only(store: Store, monkeypatch: pytest.MonkeyPatch, jobs: Jobs) -> None:
    dataset, now = make_dataset(store).id, [0.0]
    listed = noted(monkeypatch, Jobs, "ids", lambda _, after=None: after)
    pages = JobList(jobs, lambda: now[0])
    deleted, *others = (submit(store, dataset=dataset) for _ in range(3))
    assert [job.request.id for job in pages.page()[0]] == sorted([deleted, *others], reverse=True)
    others.append(submit(store, dataset=dataset))
    jobs.cancel(deleted)
    jobs.delete(deleted)
    jobs.cancel(others[-1])
    assert [job.request.id for job in pages.page()[0]] == sorted(others, reverse=True), (
        "what is new is there at once, what was deleted is not"
    )
    assert listed[0] is None
    assert listed[1] is not None
    assert listed[1] < deleted, "clocks differ"
    now[0] = 1e4
    pages.page()
    assert listed[2] is None


def test_only_what_is_not_over_is_read_for_what_is_not_over(
    store: Store, reads: list[str], dataset: str, jobs: Jobs
) -> None:
    over = [submit(store, dataset=dataset) for _ in range(5)]
    for id in over:
        jobs.cancel(id)
    waits = submit(store, dataset=dataset)
    pages = JobList(jobs)
    reads.clear()
    assert [job.request.id for job in pages.page(JobState.QUEUED)[0]] == [waits]
    assert reads == [waits]


def test_what_was_read_once_is_not_read_again_to_be_left_out(
    store: Store, reads: list[str], dataset: str, jobs: Jobs
) -> None:
    for _ in range(5):
        jobs.cancel(submit(store, dataset=dataset, model="a"))
    rare = submit(store, dataset=dataset, model="b")
    jobs.cancel(rare)
    pages = JobList(jobs)
    assert [job.request.id for job in pages.page(model="b")[0]] == [rare]
    reads.clear()
    assert [job.request.id for job in pages.page(JobState.CANCELLED, "b")[0]] == [rare]
    assert pages.page(JobState.FAILED) == ([], None)
    assert reads == [rare]


def test_a_page_for_which_too_much_would_be_read_is_short_and_goes_on(
    store: Store, reads: list[str], monkeypatch: pytest.MonkeyPatch, dataset: str
) -> None:
    monkeypatch.setattr(listing, "_MOST_READ", 4)
    rare = submit(store, dataset=dataset, model="b")
    others = [submit(store, dataset=dataset, model="a") for _ in range(9)]
    pages, cursor, found, turns = JobList(Jobs(store)), None, [], 0
    while not turns or cursor is not None:
        reads.clear()
        jobs, cursor = pages.page(model="b", cursor=cursor)
        found += [job.request.id for job in jobs]
        assert len(reads) <= 4
        turns += 1
    assert (found, turns) == ([rare], 3)
    assert pages.page(model="b")[0][0].request.id == rare
    assert len(others) == 9


def test_what_is_remembered_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch, dataset: str) -> None:
    monkeypatch.setattr(listing, "_MOST_KNOWN", 3)
    for _ in range(8):
        submit(store, dataset=dataset)
    pages = JobList(Jobs(store))
    assert len(pages.page()[0]) == 8
    assert len(pages._known) <= 3
