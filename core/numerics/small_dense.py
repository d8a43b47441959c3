"""Small dense systems and products, compiled: the same bits on every processor, which LAPACK and BLAS do not
promise."""

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled
from core.numerics.vectors import Vector, dot_of

Matrix = NDArray[np.float64]


@compiled
def solve(matrix: Matrix, right: Vector) -> Vector:
    """The x, shape (n,), of ``matrix @ x = right``, by Gaussian elimination with the largest pivot of a column, of
    equals the first.

    ``matrix`` of shape (n, n). Not finite where the matrix is singular.
    """
    rows, found = matrix.copy(), right.copy()
    size = len(found)
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(rows[i, k]) > abs(rows[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(k, size):
                rows[k, j], rows[pivot, j] = rows[pivot, j], rows[k, j]
            found[k], found[pivot] = found[pivot], found[k]
        for i in range(k + 1, size):
            factor = rows[i, k] / rows[k, k]
            if factor != 0.0:
                for j in range(k + 1, size):
                    rows[i, j] -= factor * rows[k, j]
                found[i] -= factor * found[k]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            found[k] -= rows[k, j] * found[j]
        found[k] /= rows[k, k]
    return found


@compiled
def times_rows(rows: Matrix, chosen: NDArray[np.int64], start: int, stop: int, out: Matrix) -> None:
    """``out[chosen[c], k] += rows[chosen[c], start:stop] · rows[k, start:stop]`` for all k; rows in C order."""
    for c in range(len(chosen)):
        i = chosen[c]
        for k in range(len(rows)):
            out[i, k] += dot_of(rows[i], rows[k], start, stop)


@compiled
def combined(weights: Vector, rows: Matrix) -> Vector:
    """``weights @ rows``, shape (n_columns,): the rows in their order, without rows of no weight."""
    found = np.zeros(rows.shape[1])
    for k in range(len(rows)):
        weight = weights[k]
        if weight != 0.0:
            for j in range(len(found)):
                found[j] += weight * rows[k, j]
    return found
