"""L2-SVM-MFN: modified finite Newton for the two-sided squared hinge loss, with conjugate gradients and line search."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from core.engine.requests import Adjoint, Procedure, Product, Report, Scores
from core.losses.loss import Loss
from core.numerics.elementary import Vector, log_of
from core.numerics.vectors import add_scaled, apply_operator, conjugate_step, dot, steepest
from core.problem import Linear, Problem, Result, Status

_CG_ITERATIONS = 10_000
_CG_ROUNDS = 3


class StoppingRule(NamedTuple):
    """When a solve is good enough: at either of these."""

    gap: float
    """the objective is certified to lie within this relative distance of its minimum: |∇f|² / 2λ ≤ gap · f, f being
    λ-strongly convex"""
    reduction: float = 0.0
    """the gradient has shrunk to this share of what it was at the start"""
    max_iterations: int = 100


class Ending(NamedTuple):
    """How a solve ended."""

    objective: float
    status: Status
    iterations: int


@dataclass
class Iterate:
    """A point with its scores and its gradient; changed in place by ``minimise``."""

    coefficients: Vector
    """w, shape (n_features + 1,), the bias last"""
    scores: Vector
    """o = Xw, shape (n_rows,)"""
    slopes: Vector
    """derivative of the loss by each score, shape (n_rows,)"""
    gradient: Vector
    """Xᵀ slopes, shape (n_features + 1,): that of the loss by w"""

    @classmethod
    def zero(cls, n_rows: int, n_features: int, level: float = 0.0) -> Self:
        """w = 0 under no loss, where all scores are ``level``."""
        return cls(np.zeros(n_features + 1), np.full(n_rows, level), np.zeros(n_rows), np.zeros(n_features + 1))

    def copy(self) -> "Iterate":
        """One that further steps do not move."""
        return Iterate(self.coefficients.copy(), self.scores.copy(), self.slopes.copy(), self.gradient.copy())


def result_of(iterate: Iterate, problem: Problem, objective: float, status: Status) -> Result:
    """A Result at an iterate."""
    return Result(
        Linear(iterate.coefficients[:-1], float(iterate.coefficients[-1])),
        iterate.scores[problem.n_labeled :],
        objective,
        status,
    )


def start_at(iterate: Iterate, coefficients: Vector, skipped: Vector | None = None) -> Procedure[None]:
    """Move a zero iterate, still under no loss, to given coefficients; rows with a number in ``skipped`` are not
    scored.
    """
    skipped = np.zeros_like(iterate.scores) if skipped is None else skipped
    iterate.coefficients[:] = coefficients
    iterate.scores[skipped == 0] = np.nan  # what a stop leaves unknown
    yield Scores(iterate.coefficients, skipped, iterate.scores)


def _adopt(iterate: Iterate, loss: Loss) -> Procedure[None]:
    """Give slopes and gradient for another loss at the same point: a pass over the rows that change slope (seeding,
    section 3.1.3).
    """
    slopes = np.empty_like(iterate.slopes)
    loss.evaluate(iterate.scores, slopes, np.empty_like(slopes))
    changes = slopes - iterate.slopes
    if changes.any():
        yield Adjoint(changes, iterate.gradient)
        iterate.slopes = slopes


def minimise(iterate: Iterate, loss: Loss, ridge: float, rule: StoppingRule, report: Report) -> Procedure[Ending]:
    """Move ``iterate``, which may stand under another loss, to the minimum of a regularised loss.

    Objective: ``f(w) = λ/2 |w|² + loss(o)``, o = Xw, λ = ``ridge``; strictly convex, piecewise quadratic. With
    core.losses.squared_hinge it is that of the L2-SVM. Each iteration solves Newton's system over the active sides of
    the rows (Eqn. 4) by conjugate gradients, no more exactly than the way to the minimum deserves, and ends with the
    exact line search. Rows outside the active set are not read by the conjugate gradients. A gradient costs a pass only
    over the rows that the step switched: all others moved along a straight line. Stopping: ``rule``. Every iteration
    yields ``report`` with its own iteration, and f added to its stage objective: the part that w does not change.
    Returns: f at the final iterate and the status. Source: Table 1 of Sindhwani & Keerthi 2006; with both costs of a
    row it is Table 7.
    """
    yield from _adopt(iterate, loss)
    curvatures, ignored = np.empty_like(iterate.slopes), np.empty_like(iterate.slopes)
    descent = np.empty_like(iterate.coefficients)
    charged = loss.charged
    # without rounding as many iterations as columns would do; badly scaled values would take all of _CG_ITERATIONS
    most = min(_CG_ITERATIONS, _CG_ROUNDS * len(iterate.coefficients))
    start = 0.0
    for iteration in range(rule.max_iterations + 1):
        value = loss.evaluate(iterate.scores, ignored, curvatures)
        squared_norm, squared_size = steepest(iterate.coefficients, iterate.gradient, ridge, descent)
        objective, size = 0.5 * ridge * squared_norm + value, math.sqrt(squared_size)
        start = start or size
        goal = max(math.sqrt(2 * ridge * rule.gap * objective), rule.reduction * start)
        fraction = report.fraction + report.share * _progress(start, size, goal)
        yield report._replace(
            iteration=iteration, stage_objective=report.stage_objective + objective, fraction=fraction
        )
        if not math.isfinite(objective):
            return Ending(objective, Status.NUMERICAL_ERROR, iteration)
        if size <= goal:
            return Ending(objective, Status.CONVERGED, iteration)
        if iteration == rule.max_iterations:
            break
        forcing = min(0.1, max(0.5 * goal / size, size / start * 0.1))
        step = yield from conjugate_gradients(curvatures, descent, ridge, forcing, most)
        if not step.iterations:
            return Ending(objective, Status.NUMERICAL_ERROR, iteration)
        if (dormant := (curvatures == 0) & charged).any():
            yield Scores(step.coefficients, (~dormant).astype(np.float64), step.scores)
        yield from _advance(iterate, step, curvatures, loss, ridge)
    return Ending(objective, Status.ITERATION_LIMIT, iteration)


def _progress(start: float, size: float, goal: float) -> float:
    """How far a gradient has come from its first size to the size that ends the solve, as convergence goes: by orders
    of magnitude.
    """
    if not 0 < goal < size < start:
        return 0.0 if size >= start > goal else 1.0
    return log_of(start / size) / log_of(start / goal)


def _advance(iterate: Iterate, step: "Step", curvatures: Vector, loss: Loss, ridge: float) -> Procedure[None]:
    """Line search, then the new point and its gradient."""
    slope = ridge * dot(iterate.coefficients, step.coefficients)
    length = step_length(iterate.scores, step.scores, loss, slope, ridge * dot(step.coefficients, step.coefficients))
    add_scaled(iterate.coefficients, length, step.coefficients)
    add_scaled(iterate.scores, length, step.scores)
    add_scaled(iterate.gradient, length, step.image)
    jumps = np.empty_like(curvatures)
    if loss.update(iterate.scores, curvatures, step.scores, length, iterate.slopes, jumps):
        yield Adjoint(jumps, iterate.gradient)


_MAX_STEPS = 100


def step_length(scores: Vector, direction: Vector, loss: Loss, ridge_slope: float, ridge_curvature: float) -> float:
    """The δ ≥ 0 that minimises ``φ(δ) = λ/2 |w + δs|² + loss(o + δ Xs)``.

    ``scores`` and ``direction`` are o and Xs, shape (n_rows,); ``ridge_slope`` = λ wᵀs and ``ridge_curvature`` = λ sᵀs
    give the first term. φ' (Eqn. 6 of Sindhwani & Keerthi 2006) is increasing and piecewise linear. Table 3 sorts its
    break points; here Newton's method runs on φ' itself, within a bracket: on the piece that holds the root it is
    exact, and it takes a handful of passes over the rows where sorting them would cost as much as a pass over the data.
    The root is exact to rounding.
    """
    low, high, length = 0.0, math.inf, 1.0
    for _ in range(_MAX_STEPS):
        first, second = loss.along(scores, direction, length)
        first += ridge_slope + length * ridge_curvature
        second += ridge_curvature
        if first > 0:
            high = length
        else:
            low = length
        following = length - first / second
        if not low < following < high:
            following = (low + high) / 2 if following != low else low
        if abs(following - length) <= 1e-13 * length:
            return following
        length = following
    return length


class Step(NamedTuple):
    """An approximate solution s of ``(λI + XᵀHX) s = b``."""

    coefficients: Vector
    """s, shape (n_features + 1,)"""
    scores: Vector
    """Xs on the rows with a weight in H, shape (n_rows,); elsewhere 0"""
    image: Vector
    """XᵀHXs, shape (n_features + 1,)"""
    iterations: int


def conjugate_gradients(
    curvatures: Vector, target: Vector, ridge: float, relative_residual: float, max_iterations: int
) -> Procedure[Step]:
    """Solve ``(λI + XᵀHX) s = b`` from s = 0 until the residual is ``relative_residual`` of b.

    Objective: ``½ sᵀ(λI + XᵀHX)s − bᵀs``, with H = diag(``curvatures``) of shape (n_rows,), b = ``target``, λ =
    ``ridge``. Given: H ≥ 0, λ > 0; the result is a descent direction of the objective that b is the negative gradient
    of, however early it stops: no iterations are made only if that has nothing but rounding for a curvature. Source:
    Table 2 (CGLS) of Sindhwani & Keerthi 2006, for the step instead of the solution, so that seeding with the last
    solution is its starting at 0; both products with X are one pass (Product), and Xs falls out of it.
    """
    solution, residual = np.zeros_like(target), target.copy()
    direction = target.copy()
    scores, moved = np.zeros_like(curvatures), np.zeros_like(curvatures)
    norm = dot(residual, residual)
    goal = relative_residual * relative_residual * norm
    iterations = 0
    while iterations < max_iterations and norm > goal and norm > 0:
        image = yield Product(direction, curvatures, moved)
        rate, norm = conjugate_step(solution, residual, direction, image, ridge, norm)
        if not rate:
            break
        add_scaled(scores, rate, moved)
        iterations += 1
    apply_operator(target, residual, solution, ridge)
    return Step(solution, scores, residual, iterations)
