"""The figures of a long backlog rest on a store that holds the records it is said to hold."""

from typing import Any

from benchmarks.backlog import Measured, Sizes, SlowStore, fill, section
from benchmarks.base import Log
from storage.records import JobState
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from tests.there import there

SIZES = Sizes(queued=2, finished=3, versions=2, call_seconds=0.0)


def test_the_store_has_what_it_is_said_to_have() -> None:
    store: Any = SlowStore(SIZES.call_seconds)
    free, done, waiting = fill(store, SIZES)
    jobs = Jobs(store)
    assert jobs.unfinished_ids() == sorted([done, *waiting])
    assert sorted(job.state for job in jobs.every()) == sorted(
        [JobState.QUEUED] * 2 + [JobState.RUNNING] + [JobState.SUCCEEDED] * 3
    )
    version = there(jobs.publish(done))
    assert [each.number for each in Models(store).versions(version.name)] == [1, 2, 3]
    Datasets(store, jobs=jobs).delete(free)
    assert store.damage.found == {}


def test_the_page_says_the_first_time_and_the_median_of_the_others() -> None:
    text = section(
        SIZES, [Measured("a", [(3.0, 0.5), (1.0, 0.1), (2.0, 0.2), (9.0, 0.3)]), Measured("b", [(4.0, 0.25)])], Log()
    )
    assert "| a | 3.00 | 0.50 | 2.00 | 0.20 |" in text
    assert "| b | 4.00 | 0.25 |  |  |" in text
