"""Fused updates of dense vectors, compiled: each reads its vectors once where NumPy would make a pass and a temporary for every operator."""

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled

Vector = NDArray[np.float64]


@compiled
def conjugate_step(solution: Vector, residual: Vector, direction: Vector, image: Vector, ridge: float, norm: float) -> tuple[float, float]:
    """One step of conjugate gradients on ``λI + A``, in place.

    ``image`` is A · ``direction``, λ = ``ridge``, ``norm`` = |residual|² before the step; all vectors of one shape. Returns
    the length of the step along ``direction`` and |residual|² after it; where rounding has left no curvature there, nothing is changed, and it is 0.
    """
    curvature = 0.0
    for j in range(len(direction)):
        curvature += direction[j] * (image[j] + ridge * direction[j])
    if not curvature > 0.0:
        return 0.0, norm
    rate = norm / curvature
    left = 0.0
    for j in range(len(direction)):
        solution[j] += rate * direction[j]
        residual[j] -= rate * (image[j] + ridge * direction[j])
        left += residual[j] * residual[j]
    turn = left / norm
    for j in range(len(direction)):
        direction[j] = residual[j] + turn * direction[j]
    return rate, left


@compiled
def steepest(coefficients: Vector, pull: Vector, ridge: float, descent: Vector) -> tuple[float, float]:
    """Writes ``−(λ w + pull)`` to ``descent``; returns |w|² and |descent|²."""
    length, size = 0.0, 0.0
    for j in range(len(coefficients)):
        value = -(ridge * coefficients[j] + pull[j])
        descent[j] = value
        length += coefficients[j] * coefficients[j]
        size += value * value
    return length, size


@compiled
def explained(target: Vector, residual: Vector, solution: Vector, ridge: float) -> None:
    """``residual`` becomes ``target − residual − λ solution``: what the operator beside λI makes of the solution."""
    for j in range(len(target)):
        residual[j] = target[j] - residual[j] - ridge * solution[j]


@compiled
def add_scaled(target: Vector, factor: float, source: Vector) -> None:
    """``target += factor · source``."""
    for j in range(len(target)):
        target[j] += factor * source[j]
