"""Methods on one scale: each method's scores are centred and scaled by labels left out, before they are judged by them.

The class fractions that a model predicts which has none set, and how far they may be off, follow from such scores.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import Matrix, Vector, log_of, log_sum_exp, logit
from core.one_vs_rest import labels_of, n_classes_of, positives_of
from core.selection.log_evidence import LEAST
from core.validation.calibration import LOG_SLOPE_SPREAD, slopes_at

ERROR = 0.3
"""in logits: scale of the error of a predicted fraction where labels left out say where its classes meet, or nothing
favours a class"""
_UNCENTRED_ERROR = 2.0
"""in logits: the same where nothing says so, and the class of more labels may get nearly everything"""

_FEW = 20
"""labels of both sides, as many of each, up to which the error is ERROR; of more it falls with the square root of their
number"""
_LEAST_SEPARATION = 0.1
"""least difference between the shares of a class and of the others above a threshold"""


class Prediction(NamedTuple):
    """The predicted fraction of one class."""

    fraction: float
    error: float
    """scale of its error, in logits"""
    doubt: float = 0.0
    """probability that it says nothing"""


def predicted_fraction(scores: Vector) -> float:
    """The fraction of rows that scores of two classes, shape (n_rows,), give the second."""
    return float(np.count_nonzero(scores > 0) / len(scores))


def centred_prediction(
    scores: Vector, held_out: Vector, class_indices: NDArray[np.integer[Any]], balanced: bool
) -> Prediction:
    """The prediction of scores of two classes, shape (n_rows,), centred by ``held_out`` scores, shape (n_labeled,).

    Its error grows with what another threshold would change, by as much as it is unsure, and where labels left out are
    hardly told apart: then nearly all fractions lead to the same predictions. ``balanced``: the classes have equally
    many labels, so that the scores favour none.
    """
    middle = midpoint(held_out, class_indices, 1)
    centred = scores - middle.score
    fraction = predicted_fraction(centred)
    return Prediction(fraction, middle.error(balanced) if middle.deviation is None else _error_of(centred, middle))


def midpoints(held_out: NDArray[np.float64], class_indices: NDArray[np.integer[Any]]) -> Vector:
    """Where each class meets the others by ``held_out`` scores, shape (n_labeled, n_classes); shape (n_classes,)."""
    return np.array([midpoint(column, class_indices, each).score for each, column in enumerate(held_out.T)])


def _error_of(above: Vector, middle: "Midpoint") -> float:
    """The error of the fraction of rows with scores ``above`` 0, shape (n_rows,)."""
    assert middle.deviation is not None
    ends = [float((above > shift).mean()) for shift in (-middle.deviation, middle.deviation)]
    high, low = logit(np.clip(ends, LEAST, 1 - LEAST)).tolist()
    scale, doubt = ERROR * math.sqrt(_FEW / max(_FEW, middle.n_labels)) / middle.separation, (high - low) / 2
    return float(np.sqrt(scale * scale + doubt * doubt))


class Midpoint(NamedTuple):
    """Where a class meets the others."""

    score: float = 0.0
    """midway between their mean scores"""
    deviation: float | None = None
    """its standard deviation; None where one side has no label left out"""
    separation: float = 1.0
    """share of the class above it less that of the others, from .1 to 1"""
    n_labels: int = 0
    """labels left out on both sides, as many of each"""

    def error(self, balanced: bool) -> float:
        """The scale of the error of a fraction that is predicted by scores which the labels left out say so much of;
        ``balanced``: the classes have equally many labels, so that the scores favour none.
        """
        return _UNCENTRED_ERROR if self.deviation is None and not balanced else ERROR / self.separation


def midpoint(held_out: Vector, class_indices: NDArray[np.integer[Any]], positive: int) -> Midpoint:
    """The midpoint of a class by scores of labels left out, shape (n_labeled,), NaN where no fold leaves the row out.

    The mean score of the class and that of the others, each of them counting the same, do not depend on how many of a
    class are labeled. What a model calls positive does: a class of more labels reaches more documents, even if its
    labels cost no more in total.
    """
    known = np.isfinite(held_out)
    by_class = {int(each): held_out[known & (class_indices == each)] for each in np.unique(class_indices[known])}
    own = by_class.pop(positive, np.zeros(0))
    if not (len(own) and by_class):
        return Midpoint()
    others = list(by_class.values())
    middle = (float(own.mean()) + sum(float(each.mean()) for each in others) / len(others)) / 2
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in [own, *others])
    freedom = sum(len(each) - 1 for each in [own, *others])
    spread = 1 / len(own) + sum(1 / len(each) for each in others) / len(others) ** 2
    # one label more on either side of the threshold, so that a few that happen to be right do not prove anything
    above = (np.count_nonzero(own > middle) + 1) / (len(own) + 2)
    below = sum((np.count_nonzero(each > middle) + 1) / (len(each) + 2) for each in others) / len(others)
    n_labels = 2 * min(len(own), sum(len(each) for each in others))
    return Midpoint(
        middle, float(np.sqrt(squares / max(1, freedom) * spread)) / 2, max(_LEAST_SEPARATION, above - below), n_labels
    )


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
    # the logarithms of the slopes relative to SLOPE, as many at a time as make some hundred thousand logits
    steps, height = np.linspace(-_RANGE, _RANGE, _STEPS), max(1, _AT_ONCE // (len(logits) * n_classes))
    likeliest = max(_fitted(logits, own, weights, steps[start : start + height]) for start in range(0, _STEPS, height))
    return Judgement(likeliest, chance, int(np.count_nonzero(labels_of(centred) == class_indices)))


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
