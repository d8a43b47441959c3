"""Asking the observer, now and then, whether to go on."""

import time

import numpy as np

from core.progress import Observer, TracePoint

SECONDS = 0.05


class Stopped(Exception):
    """The observer asked to stop; a solver catches it where it can return its best iterate."""


class Watch:
    """Called between slices of work: tells the observer where things stand, at most every 50 ms, and raises Stopped if it asks to stop.

    Time counts from when the watch began; ``latest`` is where things stand.
    """

    def __init__(self, observer: Observer | None) -> None:
        self.latest = TracePoint("", 0, np.nan, np.nan, 0.0, 0.0)
        self._observer = observer
        self._started = self._told = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the watch began."""
        return time.monotonic() - self._started

    def __call__(self) -> None:
        """Tell and ask, if it is time."""
        now = time.monotonic()
        if self._observer is None or now - self._told < SECONDS:
            return
        self._told = now
        if self._observer(self.latest._replace(seconds=now - self._started)):
            raise Stopped
