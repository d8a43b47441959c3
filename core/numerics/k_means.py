"""Clusters of points around their means (k-means), by compiled distances: the same bits on every processor."""

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled
from core.numerics.elementary import Matrix
from core.progress import Checkpoint

Places = NDArray[np.int64]

_STARTS, _MOST_ROUNDS = 10, 50
"""runs from other centres, of which the best counts, and rounds of a run"""


def k_means(points: Matrix, n_clusters: int, seed: int, checkpoint: Checkpoint) -> Matrix:
    """The centres of clusters of these points, shape (n_clusters, n_columns); fewer where fewer points differ.

    Objective: the sum of the squared distances of ``points``, shape (n_points, n_columns), from their nearest centres.
    Lloyd's rounds go on until no point moves, from centres that are drawn far apart; the best of ten such runs counts.
    ``checkpoint`` is called in every round. Source of the draw: Arthur & Vassilvitskii, k-means++, 2007, section 2.2.
    """
    rng, least, best = np.random.default_rng(seed), np.inf, points[:0]
    for _ in range(_STARTS):
        centres = _drawn(points, n_clusters, rng)
        places, before = np.zeros(len(points), np.int64), np.full(len(points), -1)
        for _ in range(_MOST_ROUNDS):
            total = assign(points, centres, places)
            checkpoint()
            if (places == before).all():
                break
            before[:] = places
            _move(points, places, centres)
        if total < least:
            least, best = total, centres
    return best


@compiled
def assign(points: Matrix, centres: Matrix, places: Places) -> float:
    """Write the nearest centre of each point to ``places``, of equals the first; the sum of the squared distances."""
    total = 0.0
    for i in range(len(points)):
        least = np.inf
        for k in range(len(centres)):
            distance = 0.0
            for j in range(points.shape[1]):
                off = points[i, j] - centres[k, j]
                distance += off * off
            if distance < least:
                least = distance
                places[i] = k
        total += least
    return total


@compiled
def _move(points: Matrix, places: Places, centres: Matrix) -> None:
    """Move centres to the means of their points; one without points stays."""
    counts, sums = np.zeros(len(centres)), np.zeros(centres.shape)
    for i in range(len(points)):
        counts[places[i]] += 1.0
        for j in range(points.shape[1]):
            sums[places[i], j] += points[i, j]
    for k in range(len(centres)):
        if counts[k] > 0.0:
            for j in range(points.shape[1]):
                centres[k, j] = sums[k, j] / counts[k]


def _drawn(points: Matrix, n_clusters: int, rng: np.random.Generator) -> Matrix:
    """Points that are drawn one after the other by their squared distances from those before."""
    chosen, distances = [int(rng.integers(len(points)))], np.full(len(points), np.inf)
    while len(chosen) < n_clusters:
        off = points - points[chosen[-1]]
        distances = np.minimum(distances, sum((column * column for column in off.T), np.zeros(len(points))))
        reached = np.cumsum(distances)
        if not reached[-1] > 0:
            break
        chosen.append(int(np.searchsorted(reached, rng.random() * reached[-1], side="right")))
    return points[chosen]
