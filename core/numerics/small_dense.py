"""Small dense systems and products, compiled: the same bits on every processor, which LAPACK and BLAS do not
promise."""

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled
from core.numerics.elementary import Matrix as Matrix
from core.numerics.vectors import Vector, dot_of


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


@compiled
def row_products(left: Matrix, right: Matrix) -> Matrix:
    """Products of all rows of two matrices in C order, shape (n_left, n_right)."""
    found = np.empty((len(left), len(right)))
    for i in range(len(left)):
        for k in range(len(right)):
            found[i, k] = dot_of(left[i], right[k], 0, left.shape[1])
    return found


@compiled
def factor_rows(matrix: Matrix, start: int, stop: int, least: float) -> None:
    """Rows ``start`` to ``stop`` of a symmetric matrix become those of its lower Cholesky factor, those above being so.

    A row whose square length beside those above is at most ``least`` has 0 on the diagonal, and below it.
    """
    for i in range(start, stop):
        for j in range(i):
            pivot, rest = matrix[j, j], matrix[i, j] - dot_of(matrix[i], matrix[j], 0, j)
            matrix[i, j] = rest / pivot if pivot > 0.0 else 0.0
        rest = matrix[i, i] - dot_of(matrix[i], matrix[i], 0, i)
        matrix[i, i] = np.sqrt(rest) if rest > least else 0.0
        matrix[i, i + 1 :] = 0.0


@compiled
def invert_rows(factor: Matrix, start: int, stop: int, inverse: Matrix) -> None:
    """Rows ``start`` to ``stop`` of the inverse of a lower triangular factor, those above being known; zeros where it
    has 0 on the diagonal.
    """
    for i in range(start, stop):
        pivot = factor[i, i]
        if pivot > 0.0:
            for k in range(i):
                weight = factor[i, k]
                for j in range(k + 1):
                    inverse[i, j] -= weight * inverse[k, j]
            for j in range(i):
                inverse[i, j] /= pivot
            inverse[i, i] = 1.0 / pivot
