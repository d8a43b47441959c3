"""Compares methods by labels left out, on one scale: each method's scores are centred and scaled by these labels,
before they are judged by them.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import log_of, log_sum_exp
from core.one_vs_rest import labels_of, n_classes_of, positives_of
from core.selection.prediction import midpoint
from core.validation.calibration import LOG_SLOPE_SPREAD, slopes_at

Matrix = NDArray[np.float64]

_RANGE, _STEPS = 2.5, 51
"""of the logarithm of the slope: distance from that of core.validation.calibration.SLOPE to both ends, and number of
values tried"""
_AT_ONCE = 1 << 18
"""logits that are computed at once"""


class Judgement(NamedTuple):
    """The judgement of a method's scores by labels left out."""

    log_likelihood: float
    """of the labels, in nats, all classes weighing the same and no label more than one; -inf of scores that are not
    finite"""
    chance: float
    """the same if all classes are as likely for every label"""
    right: int
    """labels that are predicted right"""

    @property
    def likelier(self) -> bool:
        """Whether the labels are likelier than by chance; true where there are none."""
        return self.log_likelihood > self.chance or not self.chance

    @property
    def gained(self) -> float:
        """The share of what chance loses that is not lost, at most 1; one nat more counts as lost by both, so that a
        handful of right labels proves nothing.
        """
        return 1.0 - (1.0 - self.log_likelihood) / (1.0 - self.chance)


def judge(
    scores: Matrix, class_indices: NDArray[np.integer[Any]], weights: NDArray[np.float64] | None = None
) -> Judgement:
    """Judge the scores of labels left out, shape (n, n_columns), by their ``class_indices``, shape (n,). Labels of one
    class say nothing. ``weights`` of the labels, shape (n,), are 1 by default.

    Scores of methods have different scales and, after unequal numbers of labels, thresholds that are off by different
    amounts. Neither says how well a method ranks documents, so each column is centred between its class and the others,
    and one slope makes all of them log-odds: that of the largest likelihood under a log-normal prior, by which a few
    labels that happen to be separated do not ask for certainty.
    """
    if len(np.unique(class_indices)) < 2:
        return Judgement(0.0, 0.0, 0)
    n_classes = n_classes_of(scores.shape[1])
    weights = np.ones(len(scores)) if weights is None else weights
    counts = np.bincount(class_indices, weights, n_classes)
    weights = weights * (counts[counts > 0].min() / counts[class_indices])
    chance = -float(weights.sum()) * log_of(float(n_classes))
    if not np.isfinite(scores).all():
        return Judgement(-np.inf, chance, 0)
    centred = np.column_stack(
        [
            column - midpoint(column, class_indices, positive).score
            for column, positive in zip(scores.T, positives_of(n_classes), strict=True)
        ]
    )
    logits = np.column_stack([np.zeros(len(centred)), centred]) if n_classes == 2 else centred
    own = logits[np.arange(len(logits)), class_indices]
    likeliest = max(_fitted(logits, own, weights, steps) for steps in _steps_in_turn(len(logits) * n_classes))
    return Judgement(likeliest, chance, int(np.count_nonzero(labels_of(centred) == class_indices)))


def _steps_in_turn(n_logits: int) -> list[NDArray[np.float64]]:
    """The logarithms of the slopes relative to SLOPE, as many at a time as make some hundred thousand logits."""
    steps, height = np.linspace(-_RANGE, _RANGE, _STEPS), max(1, _AT_ONCE // n_logits)
    return [steps[start : start + height] for start in range(0, _STEPS, height)]


def _fitted(
    logits: Matrix, own: NDArray[np.float64], weights: NDArray[np.float64], steps: NDArray[np.float64]
) -> float:
    """The largest log-posterior of these slopes, ``own`` being the logits of the labels."""
    slopes = slopes_at(steps)
    sums = log_sum_exp(slopes[:, None, None] * logits, axis=2)
    fitted = (weights * (slopes[:, None] * own - sums)).sum(axis=1) - 0.5 * (steps / LOG_SLOPE_SPREAD) * (
        steps / LOG_SLOPE_SPREAD
    )
    return float(fitted.max())
