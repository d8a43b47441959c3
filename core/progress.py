"""Progress of long work, and the callback by which it is reported and stopped."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

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
        """The same for this purpose."""
        return self._replace(purpose=purpose, value=value, fold=fold)

    def then(self, name: str, number: int | None = None) -> "Phase":
        """A phase within this one."""
        return self._replace(steps=(*self.steps, (name, number)))

    def within(self, outer: "Phase") -> "Phase":
        """The same position within a solver that is run for the purpose of ``outer``."""
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


class Observer(Protocol):
    """Callback between slices of work, at least every 250 ms; if it returns true, the solver stops and returns its best
    iterate.
    """

    def __call__(self, point: TracePoint, /) -> bool:
        """Whether to stop."""
