"""Waiting for other threads and processes."""

import time
from collections.abc import Callable
from typing import TypeVar

SOON = 20.0
"""seconds in which whatever should come has come: a test that waits for longer has found what is broken"""
SLOW = 90.0
"""seconds in which processes of their own have loaded or compiled kernels, trained, or stopped, however busy the
machine is"""
HANG = 100.0
"""seconds that pass in no test, for leases and time-outs that must not run out"""
T = TypeVar("T")


def until(condition: Callable[[], T | None], seconds: float = SOON) -> T:
    """The first answer of ``condition`` that is true; fails when none comes soon."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it did not come true within {seconds:g} s"
        time.sleep(0.01)
    return found
