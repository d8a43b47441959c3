"""The concave-convex procedure over the dual: convex solves, each with the concave part of the loss replaced by its tangent."""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.engine.kernel_requests import KernelSums
from core.engine.runner import Report, Request
from core.kernels.cache import RowCache
from core.kernels.gram import Vector
from core.optimizers.expansion import Solution, keep
from core.optimizers.smo import Iterate, Terms, maximise
from core.problem.result import Status

Sides = NDArray[np.int8]

_ROUNDING = 1e-12


class Split(Protocol):
    """An objective that is a convex function minus another: ``½ |w|² + loss``, over the points of a row cache."""

    def sides(self, scores: Vector) -> Sides:
        """Which piece of the concave part each point is on: β of the paper, in a number a point."""
        ...

    def terms(self, sides: Sides) -> Terms:
        """The dual's terms with the concave part replaced by its tangent on these pieces."""
        ...

    def objective(self, solution: Solution) -> float:
        """The objective itself."""
        ...

    def intercept(self, iterate: Iterate, found: float) -> float:
        """The intercept to go with multipliers for which the solver found another."""
        ...

    def kept(self, iterate: Iterate) -> NDArray[np.int64]:
        """The rows of the problem that a model with these multipliers keeps."""
        ...


@dataclass
class Descent:
    """Where the procedure stands: ``best`` is the solution of least objective so far; changed in place by ``descend``."""

    split: Split
    iterate: Iterate
    best: Solution | None = None
    objective: float = math.inf
    iterations: int = 0


def descend(
    cache: RowCache, descent: Descent, sides: Sides, tolerance: float, most: int, report: Report, *, final_from: int = 0
) -> Generator[Request, Any, Status]:
    """Move ``descent`` to a point where the pieces stay as they are, from its iterate and the pieces ``sides``.

    Objective: that of ``descent.split``; each round of Algorithms 1.2 and 1.3 of Collobert et al. 2006 lowers it. A round that does not lower it is
    within the tolerance of the convex solves, and ends the procedure as well; the solution before it is kept.
    From round ``final_from`` on, or at the end, the rows of a solution are told as those that a model would keep.
    Stopping: the pieces repeat, or ``most`` rounds.
    """
    status, kept = Status.ITERATION_LIMIT, True
    for number in range(most):
        terms = descent.split.terms(sides)
        yield from adopt(cache, descent.iterate, terms)
        inner = report._replace(phase=f"{report.phase}/round={number}", objective=_known(descent.objective), share=report.share * 0.5 ** (number + 1))
        inner = inner._replace(fraction=report.fraction + report.share * (1.0 - 0.5**number))
        ending = yield from maximise(cache, terms, descent.iterate, tolerance, inner)
        solution = Solution(descent.iterate, descent.split.intercept(descent.iterate, ending.intercept))
        objective = descent.split.objective(solution)
        if not math.isfinite(objective):
            return Status.NUMERICAL_ERROR
        if objective >= descent.objective * (1.0 - _ROUNDING):
            status = ending.status
            break
        descent.best, descent.objective, descent.iterations = Solution(descent.iterate.copy(), solution.intercept), objective, number + 1
        yield report._replace(iteration=number + 1, stage_objective=objective, objective=objective, fraction=inner.fraction + inner.share)
        kept = number >= final_from
        if kept:
            yield from keep(cache.gram.kernel, descent.split.kept(descent.iterate))
        sides, before = descent.split.sides(solution.scores), sides
        if np.array_equal(sides, before) or ending.status is not Status.CONVERGED:
            status = ending.status
            break
    if not kept and descent.best is not None:
        yield from keep(cache.gram.kernel, descent.split.kept(descent.best.iterate))
    return status


def _known(objective: float) -> float:
    return objective if math.isfinite(objective) else math.nan


def adopt(cache: RowCache, iterate: Iterate, terms: Terms) -> Generator[Request, Any, None]:
    """Make an iterate obey the bounds of other terms: multipliers are cut to them, and others moved so that all sum to 0 again."""
    alpha = np.clip(iterate.alpha, terms.lower, terms.upper)
    _balance(alpha, iterate.pull, terms)
    moved = np.flatnonzero(alpha != iterate.alpha)
    if len(moved):
        iterate.pull += yield KernelSums(cache, moved, alpha[moved] - iterate.alpha[moved])
        iterate.alpha = alpha


def _balance(alpha: Vector, pull: Vector, terms: Terms) -> None:
    """Move multipliers within their bounds, those first that gain most, until they sum to 0; 0 itself lies within all bounds, so they can."""
    excess = float(alpha.sum())
    if abs(excess) <= _ROUNDING * float(np.abs(alpha).sum()):
        return
    sign = -1.0 if excess > 0 else 1.0
    room = terms.upper - alpha if sign > 0 else alpha - terms.lower
    slope = np.where(alpha < terms.knot, terms.below, terms.above) if sign > 0 else -np.where(alpha > terms.knot, terms.above, terms.below)
    gain = np.where(np.isinf(room), np.inf, slope - sign * pull)
    order = np.flatnonzero(room > 0)
    order = order[np.argsort(-gain[order], kind="stable")]
    left = abs(excess)
    for r in order:
        step = min(left, room[r])
        alpha[r] += sign * step
        left -= step
        if left <= 0.0:
            break
