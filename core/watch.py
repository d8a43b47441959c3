"""Progress and cancellation: calls the observer between slices of work, and stops the work at its request, or a part of
it when its time is over.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from core.progress import WHOLE, Observer, Phase, Span, TracePoint

SECONDS = 0.05
"""least time between two calls of the observer"""


class Stopped(Exception):
    """The observer stopped the work, or its time is over.

    A solver catches this where it has a best iterate to return.
    """


class Deadline:
    """When a part of the work is to end, by ``time.monotonic``; None: never."""

    def __init__(self, at: float | None) -> None:
        self.at = at
        self.over = False
        """whether it ended this part"""


class Watch:
    """A checkpoint: called between slices of work, it reports progress to the observer, at most every 50 ms, and raises
    Stopped if that returns true.

    ``latest`` is the progress, as a fraction of this work. The observer gets the fraction of all the work, of which
    this is a ``span``, and the time since all of it ``began`` (by ``time.monotonic``), by default now. Only the thread
    that made the watch calls the observer: a call by another thread does nothing, and that thread may read ``stopped``.
    """

    def __init__(self, observer: Observer | None, span: Span = WHOLE, began: float | None = None) -> None:
        self.latest = TracePoint(Phase(), 0, np.nan, np.nan, 0.0, 0.0)
        self.stopped = False
        self._observer, self._thread = observer, threading.get_ident()
        self._span = span
        self._reported = time.monotonic()
        self._began = self._reported if began is None else began
        self._deadline = Deadline(None)

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self._began

    def begin(self, phase: Phase) -> None:
        """Work of this phase is next, which counts no iterations."""
        self.latest = TracePoint(phase, 0, np.nan, np.nan, self.latest.fraction, self.seconds)

    def of_all(self, point: TracePoint) -> TracePoint:
        """A point of this work as one of all the work."""
        return point._replace(fraction=self._span.position(point.fraction))

    def end(self, point: TracePoint) -> None:
        """Report that this work is done; the answer is ignored."""
        if self._observer is not None:
            self._observer(self.of_all(point._replace(fraction=1.0, seconds=self.seconds)))

    @contextmanager
    def until(self, seconds: float | None) -> Iterator[Deadline]:
        """Stop the work within so many seconds after all of it began; work that comes after goes on.

        None: it has all the time.
        """
        outer, self._deadline = self._deadline, Deadline(None if seconds is None else self._began + seconds)
        try:
            yield self._deadline
        finally:
            if self._deadline.over:
                self.stopped = False
            self._deadline = outer

    def __call__(self) -> None:
        """Report to the observer if it is time; raises Stopped."""
        now = time.monotonic()
        if now - self._reported < SECONDS or threading.get_ident() != self._thread:
            return
        self._reported = now
        if self._deadline.at is not None and now > self._deadline.at:
            self._deadline.over = self.stopped = True
            raise Stopped
        if self._observer is None:
            return
        if self._observer(self.of_all(self.latest._replace(seconds=self.seconds))):
            self.stopped = True
            raise Stopped
