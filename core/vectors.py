"""Fused updates of dense vectors, compiled: each reads its vectors once where NumPy would make a pass and a temporary for every operator."""

from core.loops import compiled
from core.passes import Vector


@compiled
def conjugate_step(solution: Vector, residual: Vector, direction: Vector, image: Vector, ridge: float, norm: float) -> tuple[float, float]:
    """One step of conjugate gradients on ``λI + A``, in place.

    ``image`` is A · ``direction``, λ = ``ridge``, ``norm`` = |residual|² before the step; all vectors of one shape. Returns
    the length of the step along ``direction`` and |residual|² after it.
    """
    curvature = 0.0
    for j in range(len(direction)):
        curvature += direction[j] * (image[j] + ridge * direction[j])
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
