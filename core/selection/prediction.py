"""The class fractions that a model predicts which has none set, and how far they may be off."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import logit
from core.one_vs_rest import labels_of, n_classes_of, positives_of
from core.selection.log_evidence import LEAST

Vector = NDArray[np.float64]

ERROR = 0.3
"""in logits: scale of the error of a predicted fraction where labels left out say where its classes meet, or nothing favours a class"""
_UNCENTRED_ERROR = 2.0
"""in logits: the same where nothing says so, and the class of more labels may get nearly everything"""

_FEW = 20
"""labels of both sides, as many of each, up to which the error is ERROR; of more it falls with the square root of their number"""
_LEAST_SEPARATION = 0.1
"""least difference between the shares of a class and of the others above a threshold"""


class Prediction(NamedTuple):
    """The predicted fraction of one class."""

    fraction: float
    error: float
    """scale of its error, in logits"""


def predicted_fractions(scores: NDArray[np.float64]) -> list[float]:
    """The fraction of rows that scores of shape (n_rows, n_problems) give the class of each two-class problem."""
    n_classes = n_classes_of(scores.shape[1])
    fractions = np.bincount(labels_of(scores), minlength=n_classes) / len(scores)
    return [float(fraction) for fraction in fractions[positives_of(n_classes)]]


def centred_prediction(
    scores: NDArray[np.float64], held_out: NDArray[np.float64], class_indices: NDArray[np.integer[Any]], balanced: bool
) -> list[Prediction]:
    """The predictions of scores, shape (n_rows, n_problems), each class centred by its ``held_out`` scores, shape (n_labeled, n_problems).

    Their errors grow with what another threshold would change, by as much as it is unsure, and where labels left out are hardly told apart: then
    nearly all fractions lead to the same predictions. ``balanced``: the classes have equally many labels, so that the scores favour none.
    ``scores`` are overwritten.
    """
    positives = positives_of(n_classes_of(scores.shape[1]))
    middles = [midpoint(column, class_indices, positive) for column, positive in zip(held_out.T, positives, strict=True)]
    scores -= [each.score for each in middles]
    found = predicted_fractions(scores)
    _subtract_rivals(scores)
    return [
        Prediction(fraction, _error_of(column, middle) if middle.deviation is not None else ERROR if balanced else _UNCENTRED_ERROR)
        for fraction, column, middle in zip(found, scores.T, middles, strict=True)
    ]


def _subtract_rivals(scores: NDArray[np.float64]) -> None:
    """Subtract from each score the largest of the row's others, in place; a column of two classes stays as it is."""
    if scores.shape[1] == 1:
        return
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    largest = scores[rows, best].copy()
    scores[rows, best] = -np.inf
    second = scores.max(axis=1)
    scores -= largest[:, None]
    scores[rows, best] = largest - second


def _error_of(above: Vector, middle: "Midpoint") -> float:
    """The error of the fraction of rows whose score in a column is ``above`` all others, shape (n_rows,)."""
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


def midpoint(held_out: Vector, class_indices: NDArray[np.integer[Any]], positive: int) -> Midpoint:
    """The midpoint of a class by scores of labels left out, shape (n_labeled,), NaN where no fold leaves the row out.

    The mean score of the class and that of the others, each of them counting the same, do not depend on how many of a class are labeled. What a
    model calls positive does: a class of more labels reaches more documents, even if its labels cost no more in total.
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
    return Midpoint(middle, float(np.sqrt(squares / max(1, freedom) * spread)) / 2, max(_LEAST_SEPARATION, above - below), n_labels)
