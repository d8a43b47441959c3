"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable
from typing import TypeVar

HANG = 100.0
"""seconds in which whatever is waited for happens, however busy the machine is: only what never happens takes so long"""
T = TypeVar("T")


def until(condition: Callable[[], T | None], seconds: float = HANG) -> T:
    """The first answer of ``condition`` that is true; fails when there is none, which is told only after what no slow machine takes."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it did not come true within {seconds:g} s"
        time.sleep(0.01)
    return found
