"""Progress of long work, and the callback by which it is reported and stopped."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

Checkpoint = Callable[[], None]
"""Called between slices of work; what it raises ends the work."""


class Part(NamedTuple):
    """A part of some work."""

    start: float
    """share of the work before the part"""
    stop: float
    """share of the work up to the end of the part"""

    def at(self, fraction: float) -> float:
        """The share of the work that is done when this fraction of the part is; never beyond its end, not even by rounding."""
        return min(self.stop, self.start + (self.stop - self.start) * fraction)

    def part(self, start: float, stop: float) -> "Part":
        """A part of the part."""
        return Part(self.at(start), self.at(stop))


WHOLE = Part(0.0, 1.0)


class TracePoint(NamedTuple):
    """The progress of a solver.

    ``phase`` is a path such as ``class=sport/tsvm/stage=3/mfn``. Outer loops minimise a moving objective: ``stage_objective`` must fall
    within a phase, ``objective`` is the target that chooses the best iterate (NaN before the first is known).
    """

    phase: str
    iteration: int
    stage_objective: float
    objective: float
    fraction: float
    """estimated share of the whole work that is done, 0 to 1"""
    seconds: float
    """seconds since the work began"""
    stages: int = 0
    """number of stages that the phase is one of, at most; 0 if it is not known"""


class Observer(Protocol):
    """Callback between slices of work, at least every 250 ms; if it returns true, the solver stops and returns its best iterate."""

    def __call__(self, point: TracePoint, /) -> bool:
        """Whether to stop."""
        ...
