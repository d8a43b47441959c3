"""How long work tells where it is and is asked to stop: one callback, of values."""

from typing import NamedTuple, Protocol


class TracePoint(NamedTuple):
    """Where a solver stands.

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
    """since the solver started"""


class Observer(Protocol):
    """Called between slices of work, at least every 250 ms; a true answer asks the solver to stop and return its best iterate."""

    def __call__(self, point: TracePoint, /) -> bool:
        """Whether to stop."""
        ...
