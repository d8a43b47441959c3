"""Asking the observer, now and then, whether to go on."""

import threading
import time

import numpy as np

from core.progress import WHOLE, Observer, Part, TracePoint

SECONDS = 0.05


class Stopped(Exception):
    """The observer asked to stop; a solver catches it where it can return its best iterate."""


class Watch:
    """Called between slices of work: tells the observer where things stand, at most every 50 ms, and raises Stopped if it asks to stop.

    ``latest`` is where things stand, with the fraction of this work; the observer is told what that is of all the work of which this is ``part``,
    and the time since all of it ``began`` (by ``time.monotonic``), by default now. Only the thread that made it tells and asks: a call by
    another does nothing, and may look at ``stopped``.
    """

    def __init__(self, observer: Observer | None, part: Part = WHOLE, began: float | None = None) -> None:
        self.latest = TracePoint("", 0, np.nan, np.nan, 0.0, 0.0)
        self.stopped = False
        self._observer, self._thread = observer, threading.get_ident()
        self._part = part
        self._told = time.monotonic()
        self._began = self._told if began is None else began

    @property
    def seconds(self) -> float:
        """Since the work began."""
        return time.monotonic() - self._began

    def of_all(self, point: TracePoint) -> TracePoint:
        """A point of this work as one of all the work."""
        return point._replace(fraction=self._part.at(point.fraction))

    def end(self, point: TracePoint) -> None:
        """Tell that this work is done; whether to stop is not asked any more."""
        if self._observer is not None:
            self._observer(self.of_all(point._replace(fraction=1.0, seconds=self.seconds)))

    def __call__(self) -> None:
        """Tell and ask, if it is time."""
        now = time.monotonic()
        if self._observer is None or now - self._told < SECONDS or threading.get_ident() != self._thread:
            return
        self._told = now
        if self._observer(self.of_all(self.latest._replace(seconds=self.seconds))):
            self.stopped = True
            raise Stopped
