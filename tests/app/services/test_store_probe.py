"""Readiness, which anybody may ask for as often as they like, writes to the store once a second."""

import threading

from app.services.admission import StoreProbe
from tests.waiting import HANG, at_once, until


def test_the_answer_is_remembered_for_a_second() -> None:
    now, answers, asked = [100.0], iter([True, False, True]), []

    def probe() -> bool:
        asked.append(now[0])
        return next(answers)

    store_probe, found = StoreProbe(probe, lambda: now[0]), []
    for now[0] in (100.0, 100.5, 100.99, 101.0, 101.9, 102.0):
        found.append(store_probe.writable())
    assert (asked, found) == ([100.0, 101.0, 102.0], [True, True, True, False, False, True])


def test_those_who_ask_at_once_share_an_answer() -> None:
    asked: list[int] = []

    def probe() -> bool:
        asked.append(1)
        return True

    store_probe = StoreProbe(probe, lambda: 0.0)
    assert all(at_once(8, lambda _: store_probe.writable()))
    assert asked == [1]


def test_nobody_waits_long_for_a_store_that_hangs() -> None:
    asked: list[int] = []
    go_on = threading.Event()

    def probe() -> bool:
        asked.append(1)
        return go_on.wait(HANG)

    store_probe = StoreProbe(probe, patience=0.01)
    assert [store_probe.writable() for _ in range(3)] == [False] * 3
    assert asked == [1]
    go_on.set()
    until(store_probe.writable)
