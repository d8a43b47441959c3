"""Coordinates of documents in the space of a kernel, on which a linear solver learns as much as the kernel can; those
of paths have distances along paths through dense places (Chapelle & Zien 2005, section 2).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows
from core.kernels.function import Float32Matrix
from core.kernels.gram import Gram, Positions, Vector
from core.numerics.compiled import compiled, exp, log
from core.numerics.elementary import Matrix
from core.progress import Checkpoint

Fill = Callable[[Positions, Float32Matrix], None]

_EXACT = 1e-7
"""share of Σ k(x, x) that coordinates of a kernel leave out: float32 has rounding there and nothing else"""


class Coordinates:
    """Rows z of shape (n_points, n_columns) with ``z_i · z_j = k(x_i, x_j)``: the pivoted Cholesky factor of a matrix.

    Pivots are the documents that lie farthest from the space of those before them. There are as many as it takes to
    leave no more out than a share of ``Σ k(x, x)``, or ``most_columns``. ``fill`` writes rows of the matrix,
    ``checkpoint`` is called after each; raises what it raises. Source: Fine & Scheinberg 2001, Efficient SVM training
    using low-rank kernel representations.
    """

    def __init__(
        self, diagonal: Vector, fill: Fill, most_columns: int, checkpoint: Checkpoint, left_out: float = _EXACT
    ) -> None:
        left, goal, n = diagonal.copy(), left_out * float(diagonal.sum()), len(diagonal)
        factor = np.empty((max(1, min(most_columns, n)), n))
        found: list[int] = []
        row = np.empty((1, n), np.float32)
        while len(found) < len(factor) and (not found or left.sum() > goal):
            found.append(int(left.argmax()))
            fill(np.array(found[-1:]), row)
            factor[len(found) - 1] = row[0]  # compiled, this would take two seconds: Numba compiles the error message
            _finish_column(factor, len(found) - 1, found[-1], left)
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
def _finish_column(factor: NDArray[np.float64], count: int, pivot: int, left: NDArray[np.float64]) -> None:
    """Make column ``count`` of the factor of the kernel row of its pivot, and subtract its squares from ``left``."""
    column = factor[count]
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


_LARGEST_POWER = 700.0


def path_coordinates(gram: Gram, rho: float, left_out: float, checkpoint: Checkpoint) -> Coordinates:
    """Centred coordinates of length 1 in the mean, with the distances of ``path_squares``.

    Multidimensional scaling: the inner products are ``−½ H D H``, D being the squared distances and H what subtracts
    means. A pivoted factor takes the place of eigenvectors. Negative parts, which no coordinates have, and
    ``left_out`` of the sum of squares are left out.
    """
    squares = path_squares(gram, rho, checkpoint)
    means = squares.sum(axis=1) / len(squares)
    mean = float(means.sum()) / len(squares)
    size = 0.5 * mean or 1.0

    def fill(positions: Positions, out: Float32Matrix) -> None:
        out[:] = (means[positions, None] + means - squares[positions] - mean) * (0.5 / size)

    return Coordinates((means - 0.5 * mean) / size, fill, len(squares), checkpoint, left_out)


def path_squares(gram: Gram, rho: float, checkpoint: Checkpoint) -> Matrix:
    """``D_ij = (1/ρ² ) log²(1 + min over paths from i to j of Σ (exp(ρ d) − 1))``, d being the length of a step, shape
    (n, n).

    ``gram`` has an RBF kernel, from whose values the lengths are taken; their unit is the mean distance of a document
    from its nearest. The graph has all steps. ``checkpoint`` is called after each row; raises what it raises.
    """
    n = gram.n_points
    found, row = np.empty((n, n)), np.empty((1, n), np.float32)
    for i in range(n):
        gram.fill(np.array([i]), row)
        found[i] = np.sqrt(-log(np.clip(row[0].astype(np.float64), np.finfo(np.float32).tiny, 1.0)))
        checkpoint()
    found[np.diag_indices(n)] = np.inf
    nearest = found.min(axis=1)
    unit = float(nearest[np.isfinite(nearest)].sum()) / n or 1.0
    found[np.diag_indices(n)] = 0.0
    for i in range(n):
        found[i] = exp(np.minimum(found[i] * (rho / unit), _LARGEST_POWER)) - 1.0
        checkpoint()
    for middle in range(n):
        _relax(found, middle)
        checkpoint()
    for i in range(n):
        found[i] = (log(1.0 + found[i]) / rho) ** 2
        checkpoint()
    return found


@compiled
def _relax(lengths: Matrix, middle: int) -> None:
    """Let all paths go through a document (Floyd & Warshall)."""
    through = lengths[middle].copy()
    for i in range(len(lengths)):
        first, row = lengths[i, middle], lengths[i]
        for j in range(len(row)):
            row[j] = min(row[j], first + through[j])
