"""Concave-convex procedure (CCCP) over the dual: convex solves, each with the concave part of the loss replaced by its
tangent.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.engine.requests import KernelSums, Procedure, Report
from core.kernels.cache import RowCache
from core.kernels.gram import Gram, Vector
from core.optimizers.smo import DualSolution, DualTerms, Multipliers, SmoResult, check_model_size, maximise
from core.problem import Status

Pieces = NDArray[np.int8]

_ROUNDING = 1e-12
_LEAST_DECREASE = 1e-7
"""share of the objective by which a round must lower it; kernel values are float32, so less may be their rounding"""


_MOST_MARGIN = 1e-3
SURE = 3.0
"""tolerances that a score must be from a kink to count as decided (measured: scores differ by up to one)"""
_FINEST = 1e-6
"""tolerance to which a convex solve is continued at most; float32 kernel values let scores be no surer"""


def kink_margin(tolerance: float) -> float:
    """By how much scores of convex solves with this ``tolerance`` must pass a kink to be on its other side.

    Scores are known to the tolerance only: of documents that lie on a kink, rounding would decide the piece.
    """
    return min(tolerance, _MOST_MARGIN)


class CccpLoss(Protocol):
    """A loss that makes ``½ |w|² + loss`` a convex function less another, over the points of a row cache."""

    def pieces(self, scores: Vector) -> Pieces:
        """The linear piece of the concave part that each point is on: β of the paper, as a small number."""

    def terms(self, pieces: Pieces) -> DualTerms:
        """The dual's terms with the concave part replaced by its tangent on these pieces."""

    def kink_distance(self, scores: Vector) -> float:
        """The least distance of a point's score from a kink, where its piece changes."""

    def objective(self, solution: DualSolution) -> float:
        """The objective, which is not convex."""

    def intercept(self, multipliers: Multipliers, found: float) -> float:
        """The intercept for these multipliers, where the convex solve ``found`` another."""

    def support(self, multipliers: Multipliers) -> NDArray[np.int64]:
        """Rows of the problem that a model with these multipliers stores."""


@dataclass
class CccpState:
    """State of the procedure; changed in place by ``run_cccp``."""

    loss: CccpLoss
    multipliers: Multipliers
    best: DualSolution | None = None
    """solution of least objective so far"""
    objective: float = math.inf
    """objective of that solution"""

    def kink_distance(self, intercept: float) -> float:
        """The least distance of a score from a kink, with the multipliers of now and the intercept that a convex solve
        found.
        """
        return self.loss.kink_distance(self.multipliers.kernel_sums + self.loss.intercept(self.multipliers, intercept))


def run_cccp(
    cache: RowCache,
    state: CccpState,
    pieces: Pieces,
    tolerance: float,
    max_rounds: int,
    report: Report,
    *,
    final_from: int = 0,
) -> Procedure[Status]:
    """Move ``state`` from its multipliers and these ``pieces`` to a solution that stays on its pieces.

    Objective: that of ``state.loss``; each round of Algorithms 1.2 and 1.3 of Collobert et al. 2006 lowers it. A round
    that does not is within the tolerance of the convex solves and ends the procedure; the solution before it is the
    best. From round ``final_from`` on, and at the end, the support of a solution is reported as that of a model.
    Stopping: the pieces repeat, or ``max_rounds``.
    """
    status, checked = Status.ITERATION_LIMIT, True
    for number in range(max_rounds):
        terms = state.loss.terms(pieces)
        yield from move_into_bounds(cache, state.multipliers, terms)
        inner = report._replace(
            phase=report.phase.then("round", number),
            objective=state.objective if math.isfinite(state.objective) else math.nan,
            share=report.share * 0.5 ** (number + 1),
        )
        inner = inner._replace(fraction=report.fraction + report.share * (1.0 - 0.5**number))
        found = yield from maximise_to_pieces(cache, terms, state.multipliers, tolerance, inner, state.kink_distance)
        solution = DualSolution(state.multipliers, state.loss.intercept(state.multipliers, found.intercept))
        objective = state.loss.objective(solution)
        if not math.isfinite(objective):
            return Status.NUMERICAL_ERROR
        if objective >= state.objective * (1.0 - _LEAST_DECREASE):
            status = found.status
            break
        state.best, state.objective = DualSolution(state.multipliers.copy(), solution.intercept), objective
        yield report._replace(
            iteration=number + 1, stage_objective=objective, objective=objective, fraction=inner.fraction + inner.share
        )
        checked = number >= final_from
        if checked:
            yield from check_model_size(cache.gram.kernel, state.loss.support(state.multipliers))
        pieces, before = state.loss.pieces(solution.scores), pieces
        if np.array_equal(pieces, before) or found.status is not Status.CONVERGED:
            status = found.status
            break
    if not checked and state.best is not None:
        yield from check_model_size(cache.gram.kernel, state.loss.support(state.best.multipliers))
    return status


def maximise_to_pieces(
    cache: RowCache,
    terms: DualTerms,
    multipliers: Multipliers,
    tolerance: float,
    report: Report,
    kink_distance: Callable[[float], float],
) -> Procedure[SmoResult]:
    """Solve a convex problem to the tolerance, and further where that leaves the piece of a point open.

    ``kink_distance`` is that of the scores with an intercept. Scores differ by up to the tolerance between processors
    where kernel values do. A point so near to a kink could be on either side, and lead the procedure to another local
    solution.
    """
    for finer in tolerances(cache.gram, tolerance):
        found = yield from maximise(cache, terms, multipliers, finer, report)
        if found.status is not Status.CONVERGED or kink_distance(found.intercept) > SURE * finer:
            break
    return found


def tolerances(gram: Gram, tolerance: float) -> list[float]:
    """The tolerance and finer ones, to which a convex solve is continued until all points are surely on one side of a
    kink.

    The tolerance alone where kernel values are reproducible: the side is then the same on all processors.
    """
    finer = [tolerance]
    while not gram.reproducible and finer[-1] > _FINEST:
        finer.append(max(_FINEST, 0.1 * finer[-1]))
    return finer


def move_into_bounds(cache: RowCache, multipliers: Multipliers, terms: DualTerms) -> Procedure[None]:
    """Make multipliers obey the bounds of other terms: clip them, and move others until all sum to 0 again."""
    alpha = np.clip(multipliers.alpha, terms.lower, terms.upper)
    _restore_zero_sum(alpha, multipliers.kernel_sums, terms)
    moved = np.flatnonzero(alpha != multipliers.alpha)
    if len(moved):
        multipliers.kernel_sums += yield KernelSums(cache, moved, alpha[moved] - multipliers.alpha[moved])
        multipliers.alpha = alpha


def _restore_zero_sum(alpha: Vector, kernel_sums: Vector, terms: DualTerms) -> None:
    """Move multipliers within their bounds until they sum to 0, the largest gains first. 0 lies within all bounds, so
    they can.
    """
    excess = float(alpha.sum())
    if abs(excess) <= _ROUNDING * float(np.abs(alpha).sum()):
        return
    sign = -1.0 if excess > 0 else 1.0
    room = terms.upper - alpha if sign > 0 else alpha - terms.lower
    slope = (
        np.where(alpha < terms.knot, terms.below, terms.above)
        if sign > 0
        else -np.where(alpha > terms.knot, terms.above, terms.below)
    )
    gain = np.where(np.isinf(room), np.inf, slope - sign * kernel_sums)
    order = np.flatnonzero(room > 0)
    order = order[np.argsort(-gain[order], kind="stable")]
    left = abs(excess)
    for r in order:
        step = min(left, room[r])
        alpha[r] += sign * step
        left -= step
        if left <= 0.0:
            break
