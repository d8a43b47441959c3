"""The two-sided squared hinge loss of all linear methods, over dense vectors of one number a row.

A row with score o costs ``½ [c⁺ max(0, 1 − o)² + c⁻ max(0, 1 + o)²]``: a labeled row has one of the two costs, an unlabeled row of TSVM
one (that of its temporary label), an unlabeled row of annealing both (its belief p and 1 − p, Eqn. 11 of Sindhwani & Keerthi 2006).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled


class Costs(NamedTuple):
    """What each row pays for falling short of +1 and of -1; both of shape (n_rows,), scaled as the objective has them."""

    positive: NDArray[np.float64]
    negative: NDArray[np.float64]


@compiled
def loss_terms(
    scores: NDArray[np.float64],
    positive: NDArray[np.float64],
    negative: NDArray[np.float64],
    slopes: NDArray[np.float64],
    curvatures: NDArray[np.float64],
) -> float:
    """The loss of all rows; writes its first derivative by each score to ``slopes`` and its second to ``curvatures``."""
    total = 0.0
    for i in range(len(scores)):
        below, above = max(0.0, 1.0 - scores[i]), max(0.0, 1.0 + scores[i])
        total += positive[i] * below * below + negative[i] * above * above
        slopes[i] = negative[i] * above - positive[i] * below
        curvatures[i] = (positive[i] if below > 0.0 else 0.0) + (negative[i] if above > 0.0 else 0.0)
    return 0.5 * total


@compiled
def slope_along(
    scores: NDArray[np.float64],
    direction: NDArray[np.float64],
    positive: NDArray[np.float64],
    negative: NDArray[np.float64],
    step: float,
) -> tuple[float, float]:
    """First and (right) second derivative by the step of the loss at ``scores + step · direction``."""
    first, second = 0.0, 0.0
    for i in range(len(scores)):
        move = direction[i]
        score = scores[i] + step * move
        below, above = max(0.0, 1.0 - score), max(0.0, 1.0 + score)
        first += (negative[i] * above - positive[i] * below) * move
        second += ((positive[i] if below > 0.0 else 0.0) + (negative[i] if above > 0.0 else 0.0)) * move * move
    return first, second


@compiled
def changed_slopes(
    scores: NDArray[np.float64],
    curvatures: NDArray[np.float64],
    positive: NDArray[np.float64],
    negative: NDArray[np.float64],
    direction: NDArray[np.float64],
    step: float,
    slopes: NDArray[np.float64],
    jumps: NDArray[np.float64],
) -> int:
    """Slopes after a step, and where they left the straight line.

    On entry ``scores`` are those after the step, ``slopes`` and ``curvatures`` those before. While a row keeps its active sides its slope moves by
    ``step · curvature · direction``; ``jumps`` gets the rest, which is 0 for all rows but those that a side of the loss switched on or off.
    Returns how many these are.
    """
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
