"""The threads of one training."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from core.threads import Threads
from tests.waiting import SOON


@pytest.fixture(params=[1, 2, 5], ids="{}-threads".format)
def threads(request: pytest.FixtureRequest) -> Iterator[Threads]:
    made = Threads(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_every_work_is_done_once(threads: Threads, count: int) -> None:
    done = np.zeros(count, np.int64)

    def work(position: int) -> None:
        done[position] += 1

    threads.side_by_side([lambda position=position: work(position) for position in range(count)])  # type: ignore[misc]
    assert np.all(done == 1)


def test_as_many_run_at_once_as_there_are_threads() -> None:
    threads, together = Threads(3), threading.Barrier(3)

    def meet() -> None:
        together.wait(SOON)  # a lesser number would never meet

    try:
        threads.side_by_side([meet] * 3)
    finally:
        threads.close()


@pytest.mark.parametrize("position", [0, 1, 5])
def test_an_error_is_raised_when_the_others_have_ended(threads: Threads, position: int) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    works = [lambda: None] * 6
    works[position] = fail
    with pytest.raises(ZeroDivisionError):
        threads.side_by_side(works)
    ran: list[int] = []
    threads.side_by_side([lambda: ran.append(1)])
    assert ran == [1], "nothing of the failed call is left over"


def test_the_calling_thread_is_asked_after_its_own_works(threads: Threads) -> None:
    own: list[bool] = []
    asked: list[int] = []
    threads.side_by_side(
        [lambda: own.append(threading.current_thread() is threading.main_thread())] * 20, lambda: asked.append(sum(own))
    )
    assert asked[: sum(own)] == list(range(1, sum(own) + 1))
    assert len(own) == 20


def test_the_calling_thread_is_asked_while_it_waits_for_others() -> None:
    threads, asked = Threads(2), threading.Event()
    begun = threading.Event()

    def work() -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(SOON)  # so that the other work is the other thread's
        else:
            begun.set()
            assert asked.wait(SOON), "nobody asked while this went on"

    def checkpoint() -> None:
        if begun.is_set() and not next(turns):
            asked.set()

    turns = iter([True, False, *[True] * 1000])
    try:
        threads.side_by_side([work, work], checkpoint)
    finally:
        threads.close()


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_raised_in_between_ends_the_works(count: int) -> None:
    threads, done, raised = Threads(count), [0], threading.Event()

    def work() -> None:
        done[0] += 1
        if threading.current_thread() is not threading.main_thread():
            raised.wait(SOON)  # or the others might do it all

    def checkpoint() -> None:
        raised.set()
        raise InterruptedError

    try:
        with pytest.raises(InterruptedError):
            threads.side_by_side([work] * 50, checkpoint)
    finally:
        threads.close()
    assert done[0] < 50


def test_blas_keeps_to_one_thread_while_they_live() -> None:
    def counts() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = counts()
    threads = Threads(2)
    assert set(counts()) == {1}
    threads.close()
    assert counts() == before
