"""Sequential minimal optimisation: the convex dual over kernel rows, two points at a time."""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from core.kernel.cache import RowCache
from core.kernel.gram import Positions, Vector
from core.kernel.requests import KernelRows
from core.kernel.steps import CONVERGED, GOING_ON, ROW_NEEDED, STUCK, advance, all_slopes
from core.kernel.steps import Terms as Terms
from core.result import Status
from core.sweeps import Pause, Report, Request

_SLICE = 1 << 24
"""numbers of kernel rows that a slice of steps touches: about 20 ms"""
_MOST_STEPS = 10_000_000
_TELLING = 1.25
"""the slice that is told next comes so many times as late as the last, so that a trace stays short"""


@dataclass
class Iterate:
    """Multipliers and what follows from them; changed in place by ``maximise``."""

    alpha: Vector
    """shape (n_points,), summing to 0"""
    pull: Vector
    """K alpha, shape (n_points,): the scores without the intercept"""

    @classmethod
    def zero(cls, n_points: int) -> Self:
        """No multipliers."""
        return cls(np.zeros(n_points), np.zeros(n_points))

    def copy(self) -> "Iterate":
        """One that further steps do not move."""
        return Iterate(self.alpha.copy(), self.pull.copy())


class Ending(NamedTuple):
    """How a solve ended."""

    intercept: float
    gap: float
    """by how much the worst pair of points still violates the optimality conditions"""
    status: Status
    steps: int


def maximise(cache: RowCache, terms: Terms, iterate: Iterate, tolerance: float, report: Report) -> Generator[Request, Any, Ending]:
    """Move ``iterate``, which obeys the constraints, to the maximum of the dual.

    Objective: ``Σ_r term_r(α_r) − ½ αᵀKα``, maximised subject to ``Σ_r α_r = 0`` and the bounds in ``terms``.
    Each step moves a pair of points by exactly as much as is best: the one that would most like to grow, and the one that promises the largest gain
    with it, by the second-order estimate (Fan, Chen and Lin 2005). A step ends at a bound or a knot at the latest. The compiled loop returns when
    it needs a row that is not in the cache, which is then computed together with those of the points that violate most, or when a slice is over.
    Stopping: max over points that can grow of (slope − pull) ≤ min over those that can shrink + ``tolerance``.
    Returns: the multiplier of Σ α = 0, which is the intercept.
    """
    machine = _Machine(cache, terms, iterate)
    first, done, slices, told = math.nan, 0, 0, 0
    while True:
        code, steps = machine.run(tolerance)
        done += steps
        if code == ROW_NEEDED:
            yield KernelRows(cache, machine.wanted())
            continue
        if code != GOING_ON or done >= max(_MOST_STEPS, 100 * len(iterate.alpha)):
            status = {CONVERGED: Status.CONVERGED, GOING_ON: Status.ITERATION_LIMIT, STUCK: Status.NUMERICAL_ERROR}[code]
            return Ending(machine.intercept(), machine.gap, status, done)
        slices += 1
        first = machine.gap if math.isnan(first) else first
        if slices < told * _TELLING:
            yield Pause()
        else:
            told = slices
            way = math.log(max(first, tolerance) / max(machine.gap, tolerance)) / max(math.log(max(first, tolerance) / tolerance), 1e-9)
            value = report.stage_objective - dual_value(terms, iterate)
            yield report._replace(iteration=slices, stage_objective=value, fraction=report.fraction + report.share * min(1.0, max(0.0, way)))


def dual_value(terms: Terms, iterate: Iterate) -> float:
    """``Σ_r term_r(α_r) − ½ αᵀKα``, the terms counted from α = 0 (knots at infinity have the same slope on both sides)."""
    alpha, knot = iterate.alpha, terms.knot
    bent = terms.below != terms.above
    linear = float(terms.below @ alpha) - 0.5 * float(alpha @ iterate.pull)
    over = np.maximum(alpha[bent] - knot[bent], 0.0) - np.maximum(-knot[bent], 0.0)
    return linear + float((terms.above[bent] - terms.below[bent]) @ over)


class _Machine:
    """The arrays that the compiled loop works on."""

    def __init__(self, cache: RowCache, terms: Terms, iterate: Iterate) -> None:
        self.ends = np.zeros(2)
        self._cache, self._terms, self._iterate = cache, terms, iterate
        self._up, self._low = np.empty_like(iterate.alpha), np.empty_like(iterate.alpha)
        self._pair = np.zeros(2, np.int64)
        all_slopes(iterate.alpha, terms, self._up, self._low)
        self._steps = max(1, _SLICE // len(iterate.alpha))

    def run(self, tolerance: float) -> tuple[int, int]:
        """A slice of steps: how it ended, and how many were made."""
        found: tuple[int, int] = advance(
            self._iterate.alpha,
            self._iterate.pull,
            self._up,
            self._low,
            self._terms,
            self._cache.slots,
            self._cache.now,
            tolerance,
            self._steps,
            self._pair,
            self.ends,
        )
        return found

    @property
    def gap(self) -> float:
        """By how much the worst pair violates the optimality conditions."""
        return float(self.ends[0] - self.ends[1])

    def wanted(self) -> Positions:
        """The points whose rows are needed, then, while there is room, those that will be needed most likely: which violate the conditions most."""
        needed = self._pair[self._pair >= 0]
        count = min(self._cache.spare, len(self._up)) - len(needed)
        if count <= 0:
            return needed
        middle = self.ends.mean()
        violation = np.maximum(self._up - self._iterate.pull - middle, middle - self._low + self._iterate.pull)
        violation[self._cache.slots.slot_of >= 0] = -np.inf
        violation[needed] = -np.inf
        likely = np.argpartition(-violation, count - 1)[:count] if count < len(violation) else np.arange(len(violation))
        return np.concatenate([needed, np.sort(likely[violation[likely] > 0])])

    def intercept(self) -> float:
        """The mean over the points inside a piece of their terms, where it is known exactly; without any, the middle of what is possible."""
        free = np.isfinite(self._up) & (self._up == self._low)
        if free.any():
            return float((self._up[free] - self._iterate.pull[free]).mean())
        ends = self.ends[np.isfinite(self.ends)]
        return float(ends.mean()) if len(ends) else 0.0
