"""Fused updates and sums of dense vectors, compiled: each reads its vectors once where NumPy would make a pass for
every operator.

Sums run in WIDTH lanes, number j in lane j mod WIDTH; the lanes are added up at the end, and after them what is left
over. So their bits depend on the numbers alone, not on a processor's registers or its BLAS.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled
from core.numerics.elementary import Vector as Vector
from core.numerics.lanes import minus, plus, put, spread, take, times, total
from core.numerics.width import WIDTH


@compiled
def dot_of(left: Vector, right: Vector, start: int, stop: int) -> float:
    """``Σ left · right`` of the elements ``start`` to ``stop``."""
    whole = stop - (stop - start) % WIDTH
    sums = spread(0.0)
    for j in range(start, whole, WIDTH):
        sums = plus(sums, times(take(left, j), take(right, j)))
    found: float = total(sums)
    for j in range(whole, stop):
        found += left[j] * right[j]
    return found


@compiled
def dot(left: Vector, right: Vector) -> float:
    """``Σ left · right`` of two contiguous vectors of one length."""
    found: float = dot_of(left, right, 0, len(left))
    return found


@compiled
def lane_sum(values: Vector, count: int) -> float:
    """The sum of the first ``count`` of some numbers."""
    whole = count - count % WIDTH
    sums = spread(0.0)
    for j in range(0, whole, WIDTH):
        sums = plus(sums, take(values, j))
    found: float = total(sums)
    for j in range(whole, count):
        found += values[j]
    return found


@compiled
def dots(matrix: NDArray[np.float64], vector: Vector, out: Vector) -> None:
    """``out = matrix @ vector``, for a matrix in C order."""
    for i in range(len(matrix)):
        out[i] = dot(matrix[i], vector)


@compiled
def conjugate_step(
    solution: Vector, residual: Vector, direction: Vector, image: Vector, ridge: float, norm: float
) -> tuple[float, float]:
    """One step of conjugate gradients on ``λI + A``, in place.

    ``image`` is A · ``direction``, λ = ``ridge``, ``norm`` = |residual|² before the step; all vectors of one shape.
    Returns the length of the step along ``direction`` and |residual|² after it; where rounding has left no curvature
    there, nothing is changed, and it is 0.
    """
    whole = len(direction) - len(direction) % WIDTH
    ridges, sums = spread(ridge), spread(0.0)
    for j in range(0, whole, WIDTH):
        along = take(direction, j)
        sums = plus(sums, times(along, plus(take(image, j), times(ridges, along))))
    curvature = total(sums)
    for j in range(whole, len(direction)):
        curvature += direction[j] * (image[j] + ridge * direction[j])
    if not curvature > 0.0:
        return 0.0, norm
    rate = norm / curvature
    rates, sums = spread(rate), spread(0.0)
    for j in range(0, whole, WIDTH):
        along = take(direction, j)
        put(solution, j, plus(take(solution, j), times(rates, along)))
        rest = minus(take(residual, j), times(rates, plus(take(image, j), times(ridges, along))))
        put(residual, j, rest)
        sums = plus(sums, times(rest, rest))
    left = total(sums)
    for j in range(whole, len(direction)):
        solution[j] += rate * direction[j]
        residual[j] -= rate * (image[j] + ridge * direction[j])
        left += residual[j] * residual[j]
    ratio = left / norm
    for j in range(len(direction)):
        direction[j] = residual[j] + ratio * direction[j]
    return rate, left


@compiled
def steepest(coefficients: Vector, loss_gradient: Vector, ridge: float, descent: Vector) -> tuple[float, float]:
    """Writes ``−(λ w + loss_gradient)`` to ``descent``; returns |w|² and |descent|²."""
    for j in range(len(coefficients)):
        descent[j] = -(ridge * coefficients[j] + loss_gradient[j])
    return dot(coefficients, coefficients), dot(descent, descent)


@compiled
def apply_operator(target: Vector, residual: Vector, solution: Vector, ridge: float) -> None:
    """``residual`` becomes ``target − residual − λ solution``."""
    for j in range(len(target)):
        residual[j] = target[j] - residual[j] - ridge * solution[j]


@compiled
def add_scaled(target: Vector, factor: float, source: Vector) -> None:
    """``target += factor · source``."""
    for j in range(len(target)):
        target[j] += factor * source[j]


def positions_of_largest(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Positions of the ``count`` largest values, or of all if they are fewer, ascending; of equal values the first."""
    if len(values) <= count:
        return np.arange(len(values))
    if count <= 0:
        return np.zeros(0, np.int64)
    least = np.partition(values, len(values) - count)[len(values) - count]
    above, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))
