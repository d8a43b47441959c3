"""The graph of nearest neighbours, and its Laplacian."""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.kernels.cache import Team
from core.kernels.gram import Gram, Vector
from core.numerics.compiled import compiled
from core.numerics.vectors import positions_of_largest
from core.progress import Checkpoint

_TALLEST, _GROWTH = 128, 8
"""documents of a block, at most, and blocks of ``Gram.height`` in one, of dense documents: a product of few rows reads
the whole matrix as often as one of many, which takes longer than to multiply"""


class Laplacian(NamedTuple):
    """``L = I − D^−½ W D^−½``, W being 1 where one of two documents is among the nearest of the other, else 0, and D
    the diagonal of its sums.
    """

    starts: NDArray[np.int64]
    """shape (n_rows + 1,): document i has the neighbours from ``starts[i]`` to ``starts[i + 1]``"""
    neighbours: NDArray[np.int64]
    """shape (n_edges,), ascending for each document"""
    weights: Vector
    """shape (n_edges,): entries of D^−½ W D^−½"""

    @classmethod
    def of(cls, gram: Gram, count: int, team: Team, checkpoint: Checkpoint) -> "Laplacian":
        """The graph of the ``count`` documents with the largest kernel values, of equals the first.

        By an RBF kernel these are the nearest. ``checkpoint`` is called between blocks; raises what it raises.
        """
        n = gram.n_points
        nearest = np.empty((n, min(count, n - 1)), np.int64)
        height = gram.height if gram.reproducible else min(_TALLEST, _GROWTH * gram.height)
        blocks = (np.arange(start, min(start + height, n)) for start in range(0, n, height))
        team.side_by_side(partial(_search, gram, rows, nearest, checkpoint) for rows in blocks)
        owners = np.repeat(np.arange(n), nearest.shape[1])
        others = nearest.reshape(-1)
        edges = np.unique(np.concatenate([owners * n + others, others * n + owners]))
        owners, neighbours = edges // n, edges % n
        degrees = np.bincount(owners, minlength=n)
        weights = 1.0 / np.sqrt(degrees[owners].astype(np.float64) * degrees[neighbours])
        return cls(np.concatenate([[0], np.cumsum(degrees)]), neighbours, weights)

    def image(self, scores: Vector, power: int) -> Vector:
        """``L^power`` times scores of shape (n_rows,)."""
        for _ in range(power):
            scores = _image(*self, scores)
        return scores


def _search(gram: Gram, rows: NDArray[np.int64], nearest: NDArray[np.int64], checkpoint: Checkpoint) -> None:
    """Find the nearest of some rows."""
    values = np.empty((len(rows), gram.n_points), np.float32)
    gram.fill(rows, values)
    values[np.arange(len(rows)), rows] = -np.inf
    for own, row in zip(values, rows, strict=True):
        nearest[row] = positions_of_largest(own, nearest.shape[1])
    checkpoint()


@compiled
def _image(starts: NDArray[np.int64], neighbours: NDArray[np.int64], weights: Vector, scores: Vector) -> Vector:
    found = scores.copy()
    for i in range(len(found)):
        for k in range(starts[i], starts[i + 1]):
            found[i] -= weights[k] * scores[neighbours[k]]
    return found
