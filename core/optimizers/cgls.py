"""Conjugate gradients for the regularised, weighted least-squares systems of Newton's method."""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from core.engine.runner import Product, Request, Vector
from core.numerics.vectors import add_scaled, apply_operator, conjugate_step, dot


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
) -> Generator[Request, Any, Step]:
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
