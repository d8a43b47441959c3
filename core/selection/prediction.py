"""The class fractions that a model predicts which has none set, and how far they may be off."""

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

    ``balanced``: the classes have equally many labels, so that the scores favour none.
    """
    centred = np.array(scores)
    deviations = np.full(scores.shape[1], np.nan)
    for column, positive in enumerate(positives_of(n_classes_of(scores.shape[1]))):
        middle, deviations[column] = midpoint(held_out[:, column], class_indices, positive)
        centred[:, column] -= middle
    found = predicted_fractions(centred)
    predictions = []
    for column, (fraction, deviation) in enumerate(zip(found, deviations.tolist(), strict=True)):
        if np.isnan(deviation):
            predictions.append(Prediction(fraction, ERROR if balanced else _UNCENTRED_ERROR))
            continue
        ends = []
        for sign in (-1, 1):
            moved = centred.copy()
            moved[:, column] += sign * deviation
            ends.append(predicted_fractions(moved)[column])
        low, high = logit(np.clip(ends, LEAST, 1 - LEAST))
        predictions.append(Prediction(fraction, float(np.sqrt(ERROR * ERROR + (high - low) * (high - low) / 4))))
    return predictions


def midpoint(held_out: Vector, class_indices: NDArray[np.integer[Any]], positive: int) -> tuple[float, float]:
    """The score midway between a class and the others, and its standard deviation, by scores of labels left out.

    ``held_out`` has shape (n_labeled,), NaN where no fold leaves the row out. The mean score of the class and that of the others, each of them
    counting the same, do not depend on how many of a class are labeled. What a model calls positive does: a class of more labels reaches more
    documents, even if its labels cost no more in total. 0 and NaN where one side has no label left out.
    """
    known = np.isfinite(held_out)
    means, squares, shares, freedom = {}, 0.0, {}, 0
    for each in np.unique(class_indices[known]).tolist():
        scores = held_out[known & (class_indices == each)]
        means[each], shares[each] = float(scores.mean()), 1 / len(scores)
        squares += float(((scores - means[each]) ** 2).sum())
        freedom += len(scores) - 1
    others = [each for each in means if each != positive]
    if positive not in means or not others:
        return 0.0, np.nan
    middle = (means[positive] + sum(means[each] for each in others) / len(others)) / 2
    spread = shares[positive] + sum(shares[each] for each in others) / len(others) ** 2
    return middle, float(np.sqrt(squares / max(1, freedom) * spread)) / 2
