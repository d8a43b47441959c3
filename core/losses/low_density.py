"""The smooth loss of an unlabeled row near the boundary, ``½ exp(−3 o²)``, beside the squared hinge of labeled rows."""

from typing import NamedTuple

import numpy as np

from core.losses.squared_hinge import SquaredHinge
from core.numerics.compiled import compiled, exp_of
from core.numerics.vectors import Vector, dot, lane_sum


class LowDensity(NamedTuple):
    """``½ Σ_i c_i max(0, 1 − y_i o_i)² + ½ Σ_j c_j exp(−3 o_j²)`` (Chapelle & Zien 2005).

    A core.losses.loss.Loss, except that it is not convex: the curvature of a row is given as 0 where it is below.
    """

    labeled: SquaredHinge
    """of the first rows"""
    costs: Vector
    """c_j of the rows behind them, shape (n_unlabeled,)"""

    @property
    def charged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """See Loss."""
        return np.concatenate([self.labeled.charged, self.costs > 0])

    def evaluate(self, scores: Vector, slopes: Vector, curvatures: Vector) -> float:
        """See Loss."""
        n = len(self.labeled.positive)
        value = self.labeled.evaluate(scores[:n], slopes[:n], curvatures[:n])
        terms = np.empty(len(self.costs))
        _evaluate(scores[n:], self.costs, terms, slopes[n:], curvatures[n:])
        return value + 0.5 * float(lane_sum(terms, len(terms)))

    def along(self, scores: Vector, direction: Vector, step: float) -> tuple[float, float]:
        """See Loss."""
        n = len(self.labeled.positive)
        first, second = self.labeled.along(scores[:n], direction[:n], step)
        terms, slopes, curvatures = (np.empty(len(self.costs)) for _ in range(3))
        moves = direction[n:]
        _evaluate(scores[n:] + step * moves, self.costs, terms, slopes, curvatures)
        return first + float(dot(slopes, moves)), second + float(dot(curvatures * moves, moves))

    def update(
        self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector
    ) -> int:
        """See Loss: all unlabeled rows near the boundary leave the straight line."""
        n = len(self.labeled.positive)
        count = self.labeled.update(scores[:n], curvatures[:n], direction[:n], step, slopes[:n], jumps[:n])
        expected = slopes[n:] + step * curvatures[n:] * direction[n:]
        terms, ignored = np.empty(len(self.costs)), np.empty(len(self.costs))
        _evaluate(scores[n:], self.costs, terms, slopes[n:], ignored)
        jumps[n:] = slopes[n:] - expected
        return count + int(np.count_nonzero(jumps[n:]))


@compiled
def _evaluate(scores: Vector, costs: Vector, terms: Vector, slopes: Vector, curvatures: Vector) -> None:
    for j in range(len(scores)):
        terms[j] = costs[j] * exp_of(-3.0 * scores[j] * scores[j])
    for j in range(len(scores)):
        slopes[j] = -3.0 * scores[j] * terms[j]
    for j in range(len(scores)):
        curvatures[j] = max(0.0, 18.0 * scores[j] * scores[j] - 3.0) * terms[j]
