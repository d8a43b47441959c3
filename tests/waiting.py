"""Waiting for other threads and processes."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

SOON = 20.0
"""seconds in which whatever should come has come: a test that waits for longer has found what is broken"""
SLOW = 90.0
"""seconds in which processes of their own have loaded or compiled kernels, trained, or stopped, however busy the
machine is"""
HANG = 100.0
"""seconds that pass in no test, for leases and time-outs that must not run out"""
T = TypeVar("T")


class Clock:
    """Time that passes when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def until(condition: Callable[[], T | None], seconds: float = SOON) -> T:
    """The first answer of ``condition`` that is true; fails when none comes soon."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it did not come true within {seconds:g} s"
        time.sleep(0.01)
    return found


def at_once(count: int, act: Callable[[int], Any]) -> list[Any]:
    """Results of calls, by their number, that begin at the same time."""
    ready = threading.Barrier(count)

    def call(number: int) -> Any:
        ready.wait(SOON)
        return act(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(call, range(count)))
