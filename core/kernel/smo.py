"""Sequential minimal optimisation: the convex dual over kernel rows, two points at a time."""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.kernel.cache import RowCache, Slots
from core.kernel.gram import Positions, Vector
from core.kernel.requests import KernelRows
from core.result import Status
from core.sweeps import Pause, Report, Request

# besides sums, comparisons may be taken in any order, which lets maxima run in vector registers; rows are checked to be finite beforehand
_fast = njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nnan", "nsz"}, boundscheck=False, error_model="numpy")

_SLICE = 1 << 24
"""numbers of kernel rows that a slice of steps touches: about 20 ms"""
_MOST_STEPS = 10_000_000
_TELLING = 1.25
"""the slice that is told next comes so many times as late as the last, so that a trace stays short"""
_STRIP = 512
_FLAT = 1e-12
_GOING_ON, _CONVERGED, _ROW_NEEDED, _STUCK = 0, 1, 2, 3


class Terms(NamedTuple):
    """The concave, piecewise linear term of each point of the dual, all of shape (n_points,).

    Point r may have ``lower ≤ α ≤ upper``; its term grows by ``below`` for each unit of α up to ``knot``, and by ``above ≤ below`` from there on.
    A labeled document with loss ``C max(0, 1 − y f)`` has below = y and no second piece (knot = upper). An unlabeled document and its copy with the
    other label share a kernel row, so they are one point: their multipliers add up, and the first (+1) is used up before the second (−1) is
    touched.
    """

    lower: Vector
    knot: Vector
    upper: Vector
    below: Vector
    above: Vector


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
        if code == _ROW_NEEDED:
            yield KernelRows(cache, machine.wanted())
            continue
        if code != _GOING_ON or done >= max(_MOST_STEPS, 100 * len(iterate.alpha)):
            status = {_CONVERGED: Status.CONVERGED, _GOING_ON: Status.ITERATION_LIMIT, _STUCK: Status.NUMERICAL_ERROR}[code]
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


@_fast
def all_slopes(alpha: Vector, terms: Terms, up: Vector, low: Vector) -> None:
    """For each point, what its term changes by when it grows (−inf where it cannot) and when it shrinks (inf where it cannot)."""
    for r in range(len(alpha)):
        _slopes(r, alpha, terms, up, low)


@_fast
def _slopes(r: int, alpha: Vector, terms: Terms, up: Vector, low: Vector) -> None:
    up[r] = terms.below[r] if alpha[r] < terms.knot[r] else (terms.above[r] if alpha[r] < terms.upper[r] else -np.inf)
    low[r] = terms.above[r] if alpha[r] > terms.knot[r] else (terms.below[r] if alpha[r] > terms.lower[r] else np.inf)


@_fast
def advance(
    alpha: Vector,
    pull: Vector,
    up: Vector,
    low: Vector,
    terms: Terms,
    slots: Slots,
    now: int,
    tolerance: float,
    steps: int,
    pair: NDArray[np.int64],
    ends: NDArray[np.float64],
) -> tuple[int, int]:
    """At most ``steps`` steps: how they ended and how many there were; ``pair`` are the points whose rows are needed (-1: none)."""
    rows, slot_of, stamps, diagonal = slots.rows, slots.slot_of, slots.stamps, slots.diagonal
    first = _extremes(pull, up, low, ends)
    for step in range(steps):
        if ends[0] - ends[1] <= tolerance:
            return _CONVERGED, step
        if first < 0:
            return _STUCK, step
        pair[0], pair[1] = first, -1
        own = slot_of[first]
        if own < 0:
            return _ROW_NEEDED, step
        stamps[own] = now
        second = _partner(rows[own], diagonal, diagonal[first], pull, low, ends[0])
        if second < 0:
            return _STUCK, step
        pair[1] = second
        other = slot_of[second]
        if other < 0:
            return _ROW_NEEDED, step
        stamps[other] = now
        top = terms.knot[first] if alpha[first] < terms.knot[first] else terms.upper[first]
        bottom = terms.knot[second] if alpha[second] > terms.knot[second] else terms.lower[second]
        curvature = max(diagonal[first] + diagonal[second] - 2.0 * rows[own, second], _FLAT)
        change = (ends[0] - low[second] + pull[second]) / curvature
        room = min(top - alpha[first], alpha[second] - bottom)
        if change < room:
            alpha[first] += change
            alpha[second] -= change
        else:
            change = room
            alpha[first] = top if top - alpha[first] <= room else alpha[first] + room
            alpha[second] = bottom if alpha[second] - bottom <= room else alpha[second] - room
        _slopes(first, alpha, terms, up, low)
        _slopes(second, alpha, terms, up, low)
        first = _shift(pull, rows[own], rows[other], change, up, low, ends)
    return _GOING_ON, steps


@_fast
def _extremes(pull: Vector, up: Vector, low: Vector, ends: NDArray[np.float64]) -> int:
    """``ends`` become the largest slope upwards and the smallest downwards; the point of the first, or -1."""
    most, least = -np.inf, np.inf
    for r in range(len(pull)):
        most = max(most, up[r] - pull[r])
        least = min(least, low[r] - pull[r])
    ends[0], ends[1] = most, least
    for r in range(len(pull)):
        if up[r] - pull[r] == most:
            return r
    return -1


@_fast
def _shift(
    pull: Vector,
    gained: NDArray[np.float32],
    lost: NDArray[np.float32],
    change: float,
    up: Vector,
    low: Vector,
    ends: NDArray[np.float64],
) -> int:
    """Move ``pull`` by a step; ``ends`` and the answer as in _extremes. Strips let the maxima run in vector registers."""
    most, least, at = -np.inf, np.inf, 0
    n = len(pull)
    for start in range(0, n, _STRIP):
        stop = min(start + _STRIP, n)
        strip_most, strip_least = -np.inf, np.inf
        for r in range(start, stop):
            value = pull[r] + change * (np.float64(gained[r]) - np.float64(lost[r]))
            pull[r] = value
            strip_most = max(strip_most, up[r] - value)
            strip_least = min(strip_least, low[r] - value)
        least = min(least, strip_least)
        if strip_most > most:
            most, at = strip_most, start
    ends[0], ends[1] = most, least
    for r in range(at, min(at + _STRIP, n)):
        if up[r] - pull[r] == most:
            return r
    return -1


@_fast
def _partner(row: NDArray[np.float32], diagonal: Vector, own: float, pull: Vector, low: Vector, most: float) -> int:
    """The point that can shrink and gains most with the one of this row: by ``(difference of slopes)² / curvature``; -1 if none gains."""
    best, at = 0.0, -1
    n = len(pull)
    for start in range(0, n, _STRIP):
        stop = min(start + _STRIP, n)
        strip = 0.0
        for r in range(start, stop):
            strip = max(strip, _gain(row[r], diagonal[r], own, pull[r], low[r], most))
        if strip > best:
            best, at = strip, start
    if at < 0:
        return -1
    for r in range(at, min(at + _STRIP, n)):
        if _gain(row[r], diagonal[r], own, pull[r], low[r], most) == best:
            return r
    return -1


@_fast
def _gain(value: float, diagonal: float, own: float, pull: float, low: float, most: float) -> float:
    difference = most - low + pull
    curvature = max(own + diagonal - 2.0 * value, _FLAT)
    return difference * difference / curvature if difference > 0.0 else 0.0
