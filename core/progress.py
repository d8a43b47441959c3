"""How far a training is, and when it is to stop."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

Checkpoint = Callable[[], None]
"""Called between slices of work; what it raises ends the work."""


class Span(NamedTuple):
    """A stretch of some work."""

    start: float
    """share of the work before it"""
    stop: float
    """share of the work up to its end"""

    def position(self, fraction: float) -> float:
        """The share of the work that is done when this fraction of the span is; never beyond its end, not even by
        rounding.
        """
        return min(self.stop, self.start + (self.stop - self.start) * fraction)

    def between(self, start: float, stop: float) -> "Span":
        """The stretch between two fractions of it."""
        return Span(self.position(start), self.position(stop))

    def equal(self, count: int) -> list["Span"]:
        """So many stretches of one length."""
        return [self.between(number / count, (number + 1) / count) for number in range(count)]


WHOLE = Span(0.0, 1.0)


class Phase(NamedTuple):
    """Where a training is; core.phases puts it in words."""

    solver: str = ""
    """algorithm, candidate of auto, or work before a solver"""
    steps: tuple[tuple[str, int | None], ...] = ()
    """position within the solver, outermost first: names and numbers, from 0"""
    purpose: str = ""
    """reason to run the solver, a key of core.phases.PURPOSES; empty if it makes the model itself"""
    value: float | None = None
    """number that the purpose tries, such as λ"""
    fold: int | None = None
    """fold whose labels are left out"""
    label: str | int | None = None
    """class of the two-class problem, if there are several"""
    part: str = ""
    """part of the documents that is learned from alone"""

    def to(self, purpose: str, value: float | None = None, *, fold: int | None = None) -> "Phase":
        """This phase of a solver that is run for a purpose."""
        return self._replace(purpose=purpose, value=value, fold=fold)

    def then(self, name: str, number: int | None = None) -> "Phase":
        """A phase within this one."""
        return self._replace(steps=(*self.steps, (name, number)))

    def within(self, outer: "Phase") -> "Phase":
        """This position within a solver that is run for the purpose of ``outer``."""
        return outer._replace(solver=self.solver, steps=self.steps)

    def __str__(self) -> str:
        """The path in traces, such as ``class=sport/tsvm/stage=3``."""
        purpose = self.purpose if self.value is None else f"{self.purpose}={self.value:g}"
        label, fold = _place("class", self.label), _place("fold", self.fold)
        aims = [fold, label] if self.purpose == CALIBRATION else [label, purpose, fold]
        steps = [name if number is None else _place(name, number) for name, number in self.steps]
        return "/".join(filter(None, [_place("part", self.part or None), *aims, self.solver, *steps]))


def _place(name: str, value: str | int | None) -> str:
    return "" if value is None else f"{name}={value}"


TOGETHER = "together"
"""name of all parts of the documents side by side"""
CALIBRATION = "calibration"
"""purpose of the solutions without a fold that make scores probabilities"""


class TracePoint(NamedTuple):
    """The progress of a solver.

    Outer loops minimise a moving objective: ``stage_objective`` must fall within a phase, ``objective`` is the target
    that chooses the best iterate (NaN before the first is known).
    """

    phase: Phase
    iteration: int
    stage_objective: float
    objective: float
    fraction: float
    """estimated share of the whole work that is done, 0 to 1"""
    seconds: float
    """seconds since the work began"""
    stages: int = 0
    """number of stages that the phase is one of, at most; 0 if it is not known"""


Observer = Callable[[TracePoint], bool]
"""Called between slices of work, at least every 250 ms; if it returns true, the solver stops and returns its best
iterate."""
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
        """Stop the work in the block within so many seconds after all of it began; what comes after the block goes on.

        None: it has all the time.
        """
        outer, self._deadline = self._deadline, Deadline(None if seconds is None else self._began + seconds)
        try:
            yield self._deadline
        except Stopped:
            if not self._deadline.over:
                raise
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
