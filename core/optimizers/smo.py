"""Sequential minimal optimisation (SMO): the convex dual over kernel rows, two points at a time.

The solvers of the kernel family share it, with the dual terms of labeled documents and the way from multipliers to a
Result.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from core.engine.requests import (
    CheckModelSize,
    KernelRange,
    KernelRows,
    KernelScores,
    KernelSpec,
    KernelSums,
    Procedure,
    Report,
    Yield,
)
from core.kernels.cache import RowCache
from core.kernels.function import Kernel
from core.kernels.gram import Positions, Vector
from core.numerics.elementary import log_of
from core.numerics.vectors import dot, positions_of_largest
from core.optimizers.smo_steps import CONVERGED, STUCK, advance, all_slopes
from core.optimizers.smo_steps import DualTerms as DualTerms
from core.options.kernel import KernelChoice, KernelFunction
from core.problem import Expansion, Problem, Result, Status

_SLICE = 1 << 24
"""numbers of kernel rows that a slice of steps touches: about 20 ms"""
_STEP = 1_000
"""numbers that take as long as the part of a step that does not depend on the number of points"""
_MOST_STEPS = 10_000_000
_SHARE = 0.3
"""share of the gap to which pairs among the cached points are solved before new rows are computed"""
_REPORTING = 1.25
"""growth of the number of slices between two reports, so that a trace stays short"""


@dataclass
class Multipliers:
    """Dual variables and their kernel sums; changed in place by ``maximise``."""

    alpha: Vector
    """dual variables, shape (n_points,), summing to 0"""
    kernel_sums: Vector
    """K α, shape (n_points,): the scores without the intercept"""

    @classmethod
    def zero(cls, n_points: int) -> Self:
        """All multipliers 0."""
        return cls(np.zeros(n_points), np.zeros(n_points))

    def copy(self) -> "Multipliers":
        """A copy that further steps do not change."""
        return Multipliers(self.alpha.copy(), self.kernel_sums.copy())


class SmoResult(NamedTuple):
    """How a convex solve ended."""

    intercept: float
    gap: float
    """largest violation of the optimality conditions by a pair of points"""
    status: Status
    steps: int


def maximise(
    cache: RowCache,
    terms: DualTerms,
    multipliers: Multipliers,
    tolerance: float,
    report: Report,
    most_steps: int = _MOST_STEPS,
) -> Procedure[SmoResult]:
    """Move ``multipliers``, which obey the constraints, to the maximum of the dual.

    Objective: ``Σ_r term_r(α_r) − ½ αᵀKα``, maximised subject to ``Σ_r α_r = 0`` and the bounds in ``terms``.
    Each step moves a pair of points as far as is best, but not beyond a bound or a knot. The first is the point whose
    growth violates the optimality conditions most, the second the one with the largest second-order gain beside it
    (Fan, Chen and Lin 2005). Pairs are selected among the cached points until their gap is a share of that of all
    points. Then the rows of the points that violate most are computed, a batch at a time. Stopping: max over points
    that can grow of (slope − kernel sum) ≤ min over those that can shrink + ``tolerance``; or about ``most_steps``, or
    100 for each point if that is more. Returns: the multiplier of Σ α = 0, which is the intercept.
    """
    state = _SmoState(cache, terms, multipliers)
    first, goal, done, slices, reported = state.gap, math.inf, 0, 0, 0
    most = max(most_steps, 100 * len(multipliers.alpha))
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
        if slices < reported * _REPORTING:
            yield Yield()
        else:
            reported = slices
            progress = log_of(first / max(state.gap, tolerance)) / log_of(first / tolerance)
            value = report.stage_objective - dual_value(terms, multipliers)
            fraction = report.fraction + report.share * min(1.0, max(0.0, progress))
            yield report._replace(iteration=slices, stage_objective=value, fraction=fraction)
    status = Status.CONVERGED if state.gap <= tolerance else Status.ITERATION_LIMIT
    return SmoResult(state.intercept(), state.gap, status, done)


def dual_value(terms: DualTerms, multipliers: Multipliers) -> float:
    """``Σ_r term_r(α_r) − ½ αᵀKα``, the terms being 0 at α = 0 (knots at infinity have the same slope on both
    sides)."""
    alpha, knot = multipliers.alpha, terms.knot
    bent = terms.below != terms.above
    linear = dot(terms.below, alpha) - 0.5 * dot(alpha, multipliers.kernel_sums)
    over = np.maximum(alpha[bent] - knot[bent], 0.0) - np.maximum(-knot[bent], 0.0)
    return linear + dot(terms.above[bent] - terms.below[bent], over)


class _SmoState:
    """The arrays of the compiled loop, and the violations of all points between two slices of it."""

    def __init__(self, cache: RowCache, terms: DualTerms, multipliers: Multipliers) -> None:
        self._cache, self._terms, self._multipliers = cache, terms, multipliers
        self._up, self._low = np.empty_like(multipliers.alpha), np.empty_like(multipliers.alpha)
        self._steps = max(1, _SLICE // (len(multipliers.alpha) + _STEP))
        self._update_violations()

    def _update_violations(self) -> None:
        """Compute the gain of the dual per unit as each point grows, and its loss as it shrinks."""
        all_slopes(self._multipliers.alpha, self._terms, self._up, self._low)
        self._rise, self._fall = self._up - self._multipliers.kernel_sums, self._low - self._multipliers.kernel_sums
        self._top, self._bottom = int(np.argmax(self._rise)), int(np.argmin(self._fall))

    @property
    def gap(self) -> float:
        """The largest violation of the optimality conditions by a pair of points."""
        return float(self._rise[self._top] - self._fall[self._bottom])

    def run(self, goal: float) -> tuple[int, int]:
        """A slice of steps among the cached points: how it ended, and how many were made.

        It has converged when none of these pairs violates the conditions by more than ``goal``.
        """
        cached = self._cache.slots.slot_of >= 0
        up, low = np.where(cached, self._up, -np.inf), np.where(cached, self._low, np.inf)
        alpha, kernel_sums = self._multipliers.alpha, self._multipliers.kernel_sums
        code, steps = advance(
            alpha, kernel_sums, up, low, self._terms, self._cache.slots, self._cache.now, goal, self._steps
        )
        self._update_violations()
        return code, steps

    def violators_to_fetch(self, goal: float) -> Positions:
        """The points without a cached row that violate most on either side, by more than ``goal``: at most a batch.

        The differences are those of ``gap``, rounding included: else a pair could violate by a last digit, and never be
        fetched.
        """
        missing = self._cache.slots.slot_of < 0
        rising = np.flatnonzero(missing & (self._rise - self._fall[self._bottom] > goal))
        falling = np.flatnonzero(missing & (self._rise[self._top] - self._fall > goal))
        half = self._cache.batch_rows // 2
        return np.union1d(
            rising[positions_of_largest(self._rise[rising], half)],
            falling[positions_of_largest(-self._fall[falling], half)],
        )

    def intercept(self) -> float:
        """The mean over the points inside a piece of their terms, where it is known exactly; without any, the middle of
        its bounds.
        """
        free = np.isfinite(self._up) & (self._up == self._low)
        if free.any():
            return float(self._rise[free].mean())
        ends = np.array([self._rise[self._top], self._fall[self._bottom]])
        return float(ends[np.isfinite(ends)].mean()) if np.isfinite(ends).any() else 0.0


DEFAULT_MARGIN = 100.0
"""C in units of 1 / the variance of the labeled documents in the space of the kernel, where labels are too few to
choose it by"""
_LEAST_VARIANCE = 1e-6
"""share of mean k(x, x) below which the variance is rounding error"""
_SAMPLE = 1_000


class DualSolution(NamedTuple):
    """Multipliers and the intercept that goes with them."""

    multipliers: Multipliers
    intercept: float

    @property
    def scores(self) -> Vector:
        """Scores of all points, shape (n_points,)."""
        return self.multipliers.kernel_sums + self.intercept

    @property
    def norm(self) -> float:
        """|w|², w being the direction in the space of the kernel."""
        return dot(self.multipliers.alpha, self.multipliers.kernel_sums)


def kernel_spec(options: KernelFunction) -> KernelSpec:
    """The kernel that the options name."""
    return KernelSpec(options.kernel, options.gamma, options.degree, options.coef0)


def feature_variance(cache: RowCache, n_labeled: int) -> Procedure[float]:
    """The variance of the first ``n_labeled`` points in the space of the kernel: mean k(x, x) less mean k(x, z); of
    many, of some evenly spaced ones.

    1 / variance is what C is to be compared with: with it, a document that is like no other just reaches its margin.
    """
    chosen = np.unique(np.linspace(0, n_labeled - 1, min(n_labeled, _SAMPLE)).round().astype(np.int64))
    sums: Vector = yield KernelSums(cache, chosen, np.full(len(chosen), 1.0 / len(chosen)))
    mean = float(cache.gram.diagonal[chosen].sum()) / len(chosen)
    variance = mean - float(sums[chosen].sum()) / len(chosen)
    return max(variance, _LEAST_VARIANCE * mean) or 1.0


def settled_C(options: KernelChoice, problem: Problem, most_bytes: int) -> Procedure[float]:
    """C as a number: given, chosen by core.validation.kernel_tuning, or else a value that suits the scale of the kernel
    values.

    ``most_bytes`` of kernel rows of the labeled documents may be kept for that.
    """
    if options.C != "auto":
        return options.C
    cache: RowCache = yield KernelRange(kernel_spec(options), 0, problem.n_labeled, None, most_bytes)
    if not cache.gram.fits_float32:
        return 1.0
    return options.weight_unit * DEFAULT_MARGIN / (yield from feature_variance(cache, problem.n_labeled))


def hinge_terms(y: Vector, caps: Vector) -> DualTerms:
    """Terms of documents with the loss ``caps · max(0, 1 − y f)``:
    ``0 ≤ y α ≤ caps`` (Eqn. 1.9 of Collobert et al. 2006 with β = 0).
    """
    upper = np.maximum(0.0, y * caps)
    return DualTerms(np.minimum(0.0, y * caps), upper, upper.copy(), y.copy(), y.copy())


def hinge(margins: Vector) -> Vector:
    """``max(0, 1 − z)``."""
    return np.maximum(0.0, 1.0 - margins)


def expansion_of(solution: DualSolution, kernel: Kernel) -> Expansion:
    """The expansion of a solution over rows of the problem."""
    rows = np.flatnonzero(solution.multipliers.alpha)
    return Expansion(rows, solution.multipliers.alpha[rows], solution.intercept, kernel)


def check_model_size(kernel: Kernel, support: Positions) -> Procedure[None]:
    """Report the support rows of a model, which a model in the linear kernel does not store; raises ModelTooLarge."""
    if kernel.name != "linear":
        yield CheckModelSize(support)


def empty_result(options: KernelFunction, problem: Problem, status: Status) -> Result:
    """The result of a solver that ends before it has a solution: an expansion of no row, with scores of NaN."""
    expansion = Expansion(np.zeros(0, np.int64), np.zeros(0), 0.0, Kernel(options.kernel))
    return Result(expansion, np.full(problem.n_unlabeled, np.nan), np.nan, status)


def score_unlabeled(problem: Problem, expansion: Expansion, status: Status) -> Procedure[tuple[Vector, Status]]:
    """Scores of the unlabeled rows by an expansion over labeled ones, shape (n_unlabeled,), and the status of the
    solution with these scores.

    The status is NUMERICAL_ERROR if a score leaves the range of float64.
    """
    unlabeled: Positions = np.arange(problem.n_labeled, problem.rows.n_rows)
    if not len(unlabeled) or not len(expansion.rows):
        return np.full(len(unlabeled), expansion.intercept), status
    scores: Vector = yield KernelScores(expansion.kernel, expansion.rows, expansion.weights, unlabeled)
    return scores + expansion.intercept, status if np.isfinite(scores).all() else Status.NUMERICAL_ERROR
