"""The two-sided squared hinge loss of all linear methods, over dense vectors of one number a row.

A row with score o costs ``½ [c⁺ max(0, 1 − o)² + c⁻ max(0, 1 + o)²]``: a labeled row has one of the two costs, an
unlabeled row of TSVM one (that of its temporary label), an unlabeled row of annealing both (its belief p and 1 − p,
Eqn. 11 of Sindhwani & Keerthi 2006).

Loops run over views of a tile of rows and write one array each: of several arrays at once the compiler cannot tell that
they do not overlap, and computes number by number. Measured: ten times the time.
"""

from typing import NamedTuple

import numpy as np

from core.numerics.compiled import compiled
from core.numerics.vectors import Vector, dot, lane_sum
from core.problem import Problem

_TILE = 512
"""rows whose terms are written down before they are added up"""


class SquaredHinge(NamedTuple):
    """Costs of each row for falling short of +1 and of -1; both of shape (n_rows,), scaled as the objective has them.

    A core.losses.loss.Loss.
    """

    positive: Vector
    negative: Vector

    def with_unlabeled(self, positive: Vector, negative: Vector) -> "SquaredHinge":
        """The costs with these of the unlabeled rows, which are the last; both of shape (n_unlabeled,)."""
        n_labeled = len(self.positive) - len(positive)
        return SquaredHinge(
            np.concatenate([self.positive[:n_labeled], positive]), np.concatenate([self.negative[:n_labeled], negative])
        )

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

    def update(
        self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector
    ) -> int:
        """See Loss: a slope leaves the straight line where a side of the loss is switched on or off."""
        return int(_update(scores, curvatures, *self, direction, step, slopes, jumps))


def labeled_costs(problem: Problem) -> SquaredHinge:
    """Each labeled row pays its weight on the side of its label; unlabeled rows pay nothing."""
    positive, negative = np.zeros(problem.rows.n_rows), np.zeros(problem.rows.n_rows)
    weights = problem.weights[: problem.n_labeled]
    positive[: problem.n_labeled] = np.where(problem.y > 0, weights, 0.0)
    negative[: problem.n_labeled] = np.where(problem.y < 0, weights, 0.0)
    return SquaredHinge(positive, negative)


@compiled
def _evaluate(scores: Vector, positive: Vector, negative: Vector, slopes: Vector, curvatures: Vector) -> float:
    terms, loss = np.empty(_TILE), 0.0
    for start in range(0, len(scores), _TILE):
        stop = min(start + _TILE, len(scores))
        score, plus, minus = scores[start:stop], positive[start:stop], negative[start:stop]
        slope, curvature = slopes[start:stop], curvatures[start:stop]
        for i in range(len(score)):
            below, above = max(0.0, 1.0 - score[i]), max(0.0, 1.0 + score[i])
            terms[i] = plus[i] * below * below + minus[i] * above * above
        for i in range(len(score)):
            slope[i] = minus[i] * max(0.0, 1.0 + score[i]) - plus[i] * max(0.0, 1.0 - score[i])
        for i in range(len(score)):
            curvature[i] = (plus[i] if score[i] < 1.0 else 0.0) + (minus[i] if score[i] > -1.0 else 0.0)
        loss += lane_sum(terms, len(score))
    return 0.5 * loss


@compiled
def _along(scores: Vector, direction: Vector, positive: Vector, negative: Vector, step: float) -> tuple[float, float]:
    moved, terms, first, second = np.empty(_TILE), np.empty(_TILE), 0.0, 0.0
    for start in range(0, len(scores), _TILE):
        stop = min(start + _TILE, len(scores))
        score, move, plus, minus = scores[start:stop], direction[start:stop], positive[start:stop], negative[start:stop]
        for i in range(len(score)):
            moved[i] = score[i] + step * move[i]
        for i in range(len(score)):
            terms[i] = (minus[i] * max(0.0, 1.0 + moved[i]) - plus[i] * max(0.0, 1.0 - moved[i])) * move[i]
        first += lane_sum(terms, len(score))
        for i in range(len(score)):
            terms[i] = (
                ((plus[i] if moved[i] < 1.0 else 0.0) + (minus[i] if moved[i] > -1.0 else 0.0)) * move[i] * move[i]
            )
        second += lane_sum(terms, len(score))
    return first, second


@compiled
def _update(
    scores: Vector,
    curvatures: Vector,
    positive: Vector,
    negative: Vector,
    direction: Vector,
    step: float,
    slopes: Vector,
    jumps: Vector,
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


def transductive_objective(
    problem: Problem, ridge: float, unlabeled_weight: float, coefficients: Vector, scores: Vector
) -> float:
    """J of Eqn. 18 of Sindhwani & Keerthi 2006, with weighted means.

    ``J(w) = λ/2 |w|² + 1/2 Σ_i weight_i max(0, 1 − y_i o_i)² + λ'/2 Σ_j weight_j max(0, 1 − |o'_j|)²``; ``ridge`` = λ,
    ``unlabeled_weight`` = λ', ``coefficients`` = w of shape (n_features + 1,), ``scores`` = (o, o') of shape (n_rows,).
    """
    margins = np.concatenate([problem.y * scores[: problem.n_labeled], np.abs(scores[problem.n_labeled :])])
    losses = problem.weights * np.maximum(0.0, 1.0 - margins) ** 2
    labeled, unlabeled = losses[: problem.n_labeled].sum(), losses[problem.n_labeled :].sum()
    return float(0.5 * (ridge * (dot(coefficients, coefficients)) + labeled + unlabeled_weight * unlabeled))
