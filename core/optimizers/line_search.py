"""The exact line search along a Newton step."""

import math

from core.engine.runner import Vector
from core.losses.loss import Loss

_MAX_STEPS = 100


def exact_step(scores: Vector, direction: Vector, loss: Loss, ridge_slope: float, ridge_curvature: float) -> float:
    """The δ ≥ 0 that minimises ``φ(δ) = λ/2 |w + δs|² + loss(o + δ Xs)``.

    ``scores`` and ``direction`` are o and Xs, shape (n_rows,); ``ridge_slope`` = λ wᵀs and ``ridge_curvature`` = λ sᵀs
    give the first term. φ' (Eqn. 6 of Sindhwani & Keerthi 2006) is increasing and piecewise linear. Table 3 sorts its
    break points; here Newton's method runs on φ' itself, within a bracket: on the piece that holds the root it is
    exact, and it takes a handful of passes over the rows where sorting them would cost as much as a pass over the data.
    The root is exact to rounding.
    """
    low, high, step = 0.0, math.inf, 1.0
    for _ in range(_MAX_STEPS):
        first, second = loss.along(scores, direction, step)
        first += ridge_slope + step * ridge_curvature
        second += ridge_curvature
        if first > 0:
            high = step
        else:
            low = step
        following = step - first / second
        if not low < following < high:
            following = (low + high) / 2 if following != low else low
        if abs(following - step) <= 1e-13 * step:
            return following
        step = following
    return step
