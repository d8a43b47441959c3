"""Periodic tasks of a gateway."""

import threading

import pytest

from app.services.periodic import PeriodicTask
from storage.errors import StoreUnavailable
from tests.app.conftest import Start
from tests.waiting import SOON


def test_what_fails_keeps_nothing_else_from_being_done() -> None:
    called: list[str] = []
    enough = threading.Event()

    def away() -> None:
        called.append("away")
        raise StoreUnavailable("gone")

    def broken() -> None:
        called.append("broken")
        raise ZeroDivisionError

    def works() -> None:
        called.append("works")
        if called.count("works") == 3:
            enough.set()

    with PeriodicTask("test", [away, broken, works], 0.01):
        assert enough.wait(SOON)
    assert called[:9] == ["away", "broken", "works"] * 3


def test_the_first_round_comes_soon_and_none_after_the_end() -> None:
    called = threading.Event()
    with PeriodicTask("test", [called.set], 3600):
        assert called.wait(SOON)
    called.clear()
    assert not any(thread.name == "test" for thread in threading.enumerate())


def test_a_gateway_gives_freed_memory_back(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    called = threading.Event()
    monkeypatch.setattr("app.services.wiring.release_memory", called.set)
    start()
    assert called.wait(SOON)
