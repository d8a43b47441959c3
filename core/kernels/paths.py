"""Distances along paths through dense places, and coordinates that have them (Chapelle & Zien 2005, section 2)."""

import numpy as np
from numpy.typing import NDArray

from core.kernels.coordinates import Coordinates
from core.kernels.function import Float32Matrix
from core.kernels.gram import Gram, Positions
from core.numerics.compiled import compiled
from core.numerics.compiled_elementary import exp, log
from core.progress import Checkpoint

_LARGEST_POWER = 700.0
Matrix = NDArray[np.float64]


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
