"""The two-sided squared hinge loss of all linear methods, over dense vectors of one number a row.

A row with score o costs ``½ [c⁺ max(0, 1 − o)² + c⁻ max(0, 1 + o)²]``: a labeled row has one of the two costs, an unlabeled row of TSVM
one (that of its temporary label), an unlabeled row of annealing both (its belief p and 1 − p, Eqn. 11 of Sindhwani & Keerthi 2006).
"""

from typing import NamedTuple

import numpy as np

from core.numerics.compiled import compiled
from core.numerics.vectors import Vector, lane_sum

_TILE = 512
"""rows whose terms are written down before they are added up"""


class SquaredHinge(NamedTuple):
    """What each row pays for falling short of +1 and of -1; both of shape (n_rows,), scaled as the objective has them. A core.losses.loss.Loss."""

    positive: Vector
    negative: Vector

    @property
    def charged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """See Loss."""
        return np.asarray(self.positive + self.negative > 0)

    def evaluate(self, scores: Vector, slopes: Vector, curvatures: Vector) -> float:
        """See Loss."""
        return float(_evaluate(scores, *self, slopes, curvatures))

    def along(self, scores: Vector, direction: Vector, step: float) -> tuple[float, float]:
        """See Loss."""
        first, second = _along(scores, direction, *self, step)
        return float(first), float(second)

    def update(self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector) -> int:
        """See Loss: a slope leaves the straight line where a side of the loss is switched on or off."""
        return int(_update(scores, curvatures, *self, direction, step, slopes, jumps))


@compiled
def _evaluate(scores: Vector, positive: Vector, negative: Vector, slopes: Vector, curvatures: Vector) -> float:
    terms, loss = np.empty(_TILE), 0.0
    for start in range(0, len(scores), _TILE):
        stop = min(start + _TILE, len(scores))
        for i in range(start, stop):
            below, above = max(0.0, 1.0 - scores[i]), max(0.0, 1.0 + scores[i])
            terms[i - start] = positive[i] * below * below + negative[i] * above * above
            slopes[i] = negative[i] * above - positive[i] * below
            curvatures[i] = (positive[i] if below > 0.0 else 0.0) + (negative[i] if above > 0.0 else 0.0)
        loss += lane_sum(terms, stop - start)
    return 0.5 * loss


@compiled
def _along(scores: Vector, direction: Vector, positive: Vector, negative: Vector, step: float) -> tuple[float, float]:
    firsts, seconds, first, second = np.empty(_TILE), np.empty(_TILE), 0.0, 0.0
    for start in range(0, len(scores), _TILE):
        stop = min(start + _TILE, len(scores))
        for i in range(start, stop):
            move = direction[i]
            score = scores[i] + step * move
            below, above = max(0.0, 1.0 - score), max(0.0, 1.0 + score)
            firsts[i - start] = (negative[i] * above - positive[i] * below) * move
            seconds[i - start] = ((positive[i] if below > 0.0 else 0.0) + (negative[i] if above > 0.0 else 0.0)) * move * move
        first += lane_sum(firsts, stop - start)
        second += lane_sum(seconds, stop - start)
    return first, second


@compiled
def _update(
    scores: Vector, curvatures: Vector, positive: Vector, negative: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector
) -> int:
    count = 0
    for i in range(len(scores)):
        below, above = max(0.0, 1.0 - scores[i]), max(0.0, 1.0 + scores[i])
        curvature = (positive[i] if below > 0.0 else 0.0) + (negative[i] if above > 0.0 else 0.0)
        slope = negative[i] * above - positive[i] * below
        jumps[i] = 0.0
        # a row that jumps over the whole margin goes from one cost to the other, and the two may be equal
        if curvature != curvatures[i] or (abs(scores[i]) > 1.0 and slope * slopes[i] < 0.0):
            jumps[i] = slope - (slopes[i] + step * curvatures[i] * direction[i])
            count += 1
        slopes[i] = slope
    return count
