"""Sequential minimal optimisation: the convex dual over kernel rows, two points at a time."""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from core.engine.kernel_requests import KernelRows
from core.engine.runner import Pause, Report, Request
from core.kernels.cache import RowCache
from core.kernels.gram import Positions, Vector
from core.optimizers.smo_steps import CONVERGED, STUCK, advance, all_slopes
from core.optimizers.smo_steps import DualTerms as DualTerms
from core.problem.result import Status

_SLICE = 1 << 24
"""numbers of kernel rows that a slice of steps touches: about 20 ms"""
_STEP = 1_000
"""numbers in the time of which a step does what does not depend on the number of rows"""
_MOST_STEPS = 10_000_000
_SHARE = 0.3
"""of the gap that pairs among the points in the cache are left with before new rows are computed"""
_TELLING = 1.25
"""the slice that is told next comes so many times as late as the last, so that a trace stays short"""


@dataclass
class Multipliers:
    """Multipliers and what follows from them; changed in place by ``maximise``."""

    alpha: Vector
    """shape (n_points,), summing to 0"""
    kernel_sums: Vector
    """K alpha, shape (n_points,): the scores without the intercept"""

    @classmethod
    def zero(cls, n_points: int) -> Self:
        """No multipliers."""
        return cls(np.zeros(n_points), np.zeros(n_points))

    def copy(self) -> "Multipliers":
        """One that further steps do not move."""
        return Multipliers(self.alpha.copy(), self.kernel_sums.copy())


class SmoResult(NamedTuple):
    """How a solve ended."""

    intercept: float
    gap: float
    """by how much the worst pair of points still violates the optimality conditions"""
    status: Status
    steps: int


def maximise(cache: RowCache, terms: DualTerms, multipliers: Multipliers, tolerance: float, report: Report) -> Generator[Request, Any, SmoResult]:
    """Move ``multipliers``, which obeys the constraints, to the maximum of the dual.

    Objective: ``Σ_r term_r(α_r) − ½ αᵀKα``, maximised subject to ``Σ_r α_r = 0`` and the bounds in ``terms``.
    Each step moves a pair of points by exactly as much as is best: the one that would most like to grow, and the one that promises the largest gain
    with it, by the second-order estimate (Fan, Chen and Lin 2005). A step ends at a bound or a knot at the latest. Pairs are chosen among the points
    whose rows are in the cache, until these are done to a share of the gap; then the rows of the points that violate most are computed, as many as
    is quick at a time. So no row is computed alone, and hardly any without being of use.
    Stopping: max over points that can grow of (slope − kernel_sums) ≤ min over those that can shrink + ``tolerance``.
    Returns: the multiplier of Σ α = 0, which is the intercept.
    """
    state = _SmoState(cache, terms, multipliers)
    first, goal, done, slices, told = state.gap, math.inf, 0, 0, 0
    most = max(_MOST_STEPS, 100 * len(multipliers.alpha))
    while state.gap > tolerance and done < most:
        code, steps = state.run(max(goal, tolerance))
        done += steps
        if code == STUCK:
            return SmoResult(state.intercept(), state.gap, Status.NUMERICAL_ERROR, done)
        if code == CONVERGED:
            goal = _SHARE * state.gap
            if len(wanted := state.violators_to_fetch(max(goal, tolerance))):
                yield KernelRows(cache, wanted)
            continue
        slices += 1
        if slices < told * _TELLING:
            yield Pause()
        else:
            told = slices
            way = math.log(first / max(state.gap, tolerance)) / math.log(first / tolerance)
            value = report.stage_objective - dual_value(terms, multipliers)
            yield report._replace(iteration=slices, stage_objective=value, fraction=report.fraction + report.share * min(1.0, max(0.0, way)))
    status = Status.CONVERGED if state.gap <= tolerance else Status.ITERATION_LIMIT
    return SmoResult(state.intercept(), state.gap, status, done)


def dual_value(terms: DualTerms, multipliers: Multipliers) -> float:
    """``Σ_r term_r(α_r) − ½ αᵀKα``, the terms counted from α = 0 (knots at infinity have the same slope on both sides)."""
    alpha, knot = multipliers.alpha, terms.knot
    bent = terms.below != terms.above
    linear = float(terms.below @ alpha) - 0.5 * float(alpha @ multipliers.kernel_sums)
    over = np.maximum(alpha[bent] - knot[bent], 0.0) - np.maximum(-knot[bent], 0.0)
    return linear + float((terms.above[bent] - terms.below[bent]) @ over)


class _SmoState:
    """The arrays that the compiled loop works on, and what is known of all points between its slices."""

    def __init__(self, cache: RowCache, terms: DualTerms, multipliers: Multipliers) -> None:
        self._cache, self._terms, self._multipliers = cache, terms, multipliers
        self._up, self._low = np.empty_like(multipliers.alpha), np.empty_like(multipliers.alpha)
        self._steps = max(1, _SLICE // (len(multipliers.alpha) + _STEP))
        self._update_slopes()

    def _update_slopes(self) -> None:
        """Find what each point would gain by growing and lose by shrinking."""
        all_slopes(self._multipliers.alpha, self._terms, self._up, self._low)
        self._rise, self._fall = self._up - self._multipliers.kernel_sums, self._low - self._multipliers.kernel_sums
        self._top, self._bottom = int(np.argmax(self._rise)), int(np.argmin(self._fall))

    @property
    def gap(self) -> float:
        """By how much the worst pair violates the optimality conditions."""
        return float(self._rise[self._top] - self._fall[self._bottom])

    def run(self, goal: float) -> tuple[int, int]:
        """A slice of steps among the points whose rows are in the cache: how it ended, and how many were made.

        It has converged when none of these pairs violates the conditions by more than ``goal``.
        """
        here = self._cache.slots.slot_of >= 0
        up, low = np.where(here, self._up, -np.inf), np.where(here, self._low, np.inf)
        code, steps = advance(
            self._multipliers.alpha, self._multipliers.kernel_sums, up, low, self._terms, self._cache.slots, self._cache.now, goal, self._steps
        )
        self._update_slopes()
        return code, steps

    def violators_to_fetch(self, goal: float) -> Positions:
        """Of the points without a row those that keep the gap above ``goal``: at most a block, the worst from both sides."""
        missing = self._cache.slots.slot_of < 0
        rising = np.flatnonzero(missing & (self._rise > self._fall[self._bottom] + goal))
        falling = np.flatnonzero(missing & (self._fall < self._rise[self._top] - goal))
        half = self._cache.batch_rows // 2
        return np.union1d(_largest(rising, self._rise[rising], half), _largest(falling, -self._fall[falling], half))

    def intercept(self) -> float:
        """The mean over the points inside a piece of their terms, where it is known exactly; without any, the middle of what is possible."""
        free = np.isfinite(self._up) & (self._up == self._low)
        if free.any():
            return float(self._rise[free].mean())
        ends = np.array([self._rise[self._top], self._fall[self._bottom]])
        return float(ends[np.isfinite(ends)].mean()) if np.isfinite(ends).any() else 0.0


def _largest(positions: Positions, values: Vector, count: int) -> Positions:
    """The positions with the largest values, at most ``count`` of them."""
    return positions if len(positions) <= count else positions[np.argpartition(-values, count - 1)[:count]]
