"""Coordinates of documents in the space of a kernel, in which a linear solver learns what the kernel can."""

import math

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows
from core.kernels.gram import Gram, Positions, Vector
from core.numerics.compiled import compiled
from core.progress import Checkpoint

_ENOUGH = 1e-6
"""share of the mean k(x, x) that a document's distance² from the space of the pivots may have: beyond, float32 leaves
nothing but rounding"""


class Coordinates:
    """Rows z of shape (n_points, n_columns) with ``z_i · z_j = k(x_i, x_j)``: the pivoted Cholesky factor of a kernel
    matrix.

    Pivots are the documents that lie farthest from the space of those before them. There are as many as it takes to
    come within 1e-6 of the mean k(x, x), or ``most_columns``: what lies outside their space is then left out.
    ``checkpoint`` is called after each. Raises what it raises. Source: Fine & Scheinberg 2001, Efficient SVM training
    using low-rank kernel representations.
    """

    def __init__(self, gram: Gram, most_columns: int, checkpoint: Checkpoint) -> None:
        self.kernel = gram.kernel
        left, goal = gram.diagonal.copy(), _ENOUGH * float(gram.diagonal.sum()) / max(1, gram.n_points)
        factor = np.empty((max(1, min(most_columns, gram.n_points)), gram.n_points))
        found: list[int] = []
        row = np.empty((1, gram.n_points), np.float32)
        while len(found) < len(factor) and (not found or left.max() > goal):
            found.append(int(left.argmax()))
            gram.fill(np.array(found[-1:]), row)
            _add_column(factor, len(found) - 1, found[-1], row[0], left)
            left[found] = 0.0
            factor[len(found) - 1, found[:-1]] = 0.0
            checkpoint()
        self.pivots: Positions = np.array(found)
        factor = factor[: len(found)]
        self._triangle = np.ascontiguousarray(factor[:, self.pivots])
        self.rows = FullRows.of(np.ascontiguousarray(factor.T, np.float32))

    def expansion_weights(self, coefficients: Vector) -> Vector:
        """The weights a of the pivots with ``Σ_k a_k k(x_k, x) = coefficients · z(x)`` for every x, shape
        (n_columns,)."""
        return np.asarray(_solve_upper(self._triangle, coefficients))


@compiled
def _add_column(
    factor: NDArray[np.float64], count: int, pivot: int, row: NDArray[np.float32], left: NDArray[np.float64]
) -> None:
    """Column ``count`` of the factor, from the kernel row of its pivot, and what ``left`` of each k(x, x) it leaves."""
    column = factor[count]
    column[:] = row
    for k in range(count):
        weight = factor[k, pivot]
        before = factor[k]
        for i in range(len(column)):
            column[i] -= weight * before[i]
    root = math.sqrt(left[pivot])
    for i in range(len(column)):
        column[i] = column[i] / root if root > 0.0 else 0.0
        left[i] = max(0.0, left[i] - column[i] * column[i])


@compiled
def _solve_upper(triangle: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    found = right.copy()
    for k in range(len(found) - 1, -1, -1):
        for i in range(k + 1, len(found)):
            found[k] -= triangle[k, i] * found[i]
        found[k] = found[k] / triangle[k, k] if triangle[k, k] > 0.0 else 0.0
    return found
