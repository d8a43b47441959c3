"""Co-validation: how often models of different kinds agree on the unlabeled documents says how sure their sum may be.

A few labels left out say little of how often a model is right. Naive Bayes models the documents of a class, an SVM the
border between classes: they are wrong of different documents, so that the share on which they agree is near the share
that their sum has right. Source: Madani, Pennock & Flake, Co-validation: using model disagreement on unlabeled data to
validate classification algorithms, 2004.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.binomial import QUARTILE, wilson_interval
from core.numerics.elementary import exp
from core.one_vs_rest import labels_of
from core.problem.result import Linear, Result, unlabeled_scores
from core.progress import Checkpoint
from core.selection.stack import Member, Stack
from core.validation.calibration import SLOPE, Calibration, calibration_at

Vector = NDArray[np.float64]

_WORTH = 0.5
"""weight of the share that agrees in the mean confidence that a sum is to have, beside the one that labels left out
give it"""
_MOST, _HALVINGS = 1.5, 12
"""largest logarithm of a factor on log-odds, and how often the range of these is halved to find it"""
_ENOUGH = 1 << 20
"""probabilities of unlabeled documents by which the factor is found"""


class CoValidated(NamedTuple):
    """The sum of all candidates, its confidence scaled by co-validation."""

    sum: Stack
    agreement: float
    """share of the unlabeled documents that the two models give the same class"""


def co_validate(
    pooled: Stack,
    members: Sequence[Member],
    class_indices: NDArray[np.integer[Any]],
    fractions: Vector,
    checkpoint: Checkpoint,
) -> CoValidated | None:
    """The sum ``pooled`` with all log-odds multiplied by one factor; None where all members are of one kind, or no row
    has finite scores.

    ``class_indices``, shape (n_labeled,), are the classes of the labeled rows. Of rows of numbers models that know
    little may agree on much: there agreement counts no more than the upper quartile of the share that the sum has
    right, by labels left out. ``fractions``, shape (n_classes,), are what its mean probabilities are to be before that.
    The labels stay as they are. The mean probabilities come nearer to the shares of labels where the sum becomes surer,
    and nearer to even ones where it becomes less sure. Of the ``members`` of either kind those with the largest weights
    are compared. Raises what ``checkpoint`` does.
    """
    kinds = [[each for each in members if each.generative is generative] for generative in (False, True)]
    scores = unlabeled_scores(pooled.results)
    finite, n_columns = np.isfinite(scores).all(axis=1), scores.shape[1]
    if not (all(kinds) and finite.any()):
        return None
    border, generative = (max(kind, key=lambda each: each.weight) for kind in kinds)
    agreement = float((_labels(border) == _labels(generative)).mean())
    scores = scores if finite.all() else scores[finite]
    plain = Calibration(np.full(n_columns, SLOPE), np.zeros(n_columns), np.ones(len(fractions)))
    shifts = calibration_at(plain.slopes, plain.offsets, scores, fractions, checkpoint).log_odds / SLOPE
    scores += shifts
    share = (
        min(agreement, _most_right(pooled.held_out + shifts, class_indices, fractions))
        if generative.dense
        else agreement
    )
    factor = _factor(scores[:: 1 + scores.size // _ENOUGH], plain, share, checkpoint)
    results = [_scaled(result, factor, float(shift)) for result, shift in zip(pooled.results, shifts, strict=True)]
    held_out = (pooled.held_out + shifts) * factor
    return CoValidated(Stack(results, held_out), agreement)


def _most_right(held_out: NDArray[np.float64], class_indices: NDArray[np.integer[Any]], fractions: Vector) -> float:
    """The upper quartile of the share of the unlabeled documents that held-out scores, shape (n_labeled, n_columns),
    have right.

    Each class counts by its fraction, however many of its labels were left out. To give all documents the largest class
    is always possible.
    """
    known = np.isfinite(held_out).all(axis=1)
    counts = np.bincount(class_indices[known], minlength=len(fractions))
    if np.count_nonzero(counts) < 2:
        return 1.0
    right = np.bincount(class_indices[known], labels_of(held_out[known]) == class_indices[known], len(fractions))
    shares = np.where(counts > 0, fractions, 0.0) / fractions[counts > 0].sum()
    counts = np.maximum(counts, 1)
    n_trials = 1 / float((shares * shares / counts).sum())
    return max(float(fractions.max()), wilson_interval(float((shares * right / counts).sum()), n_trials, QUARTILE)[1])


def _labels(member: Member) -> NDArray[np.intp]:
    """The labels of the unlabeled documents by one member alone, shape (n_unlabeled,)."""
    calibration = member.calibration
    logits = unlabeled_scores(member.results)
    logits *= calibration.slopes
    logits += calibration.offsets + calibration.log_odds
    return labels_of(logits)


def _factor(scores: NDArray[np.float64], plain: Calibration, share: float, checkpoint: Checkpoint) -> float:
    """The factor on scores, shape (n, n_columns), by which the mean probability of their labels is midway between its
    own and the ``share``.
    """

    def mean_confidence(step: float) -> float:
        checkpoint()
        return float(plain.probabilities(scores * exp(np.full(1, step))).max(axis=1).mean())

    goal = _WORTH * share + (1 - _WORTH) * mean_confidence(0.0)
    low, high = -_MOST, _MOST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_confidence(middle) < goal else (low, middle)
    return float(exp(np.full(1, (low + high) / 2))[0])


def _scaled(result: Result, factor: float, shift: float) -> Result:
    """A solution with scores that are shifted, then multiplied."""
    decision, intercept = result.decision, (result.decision.intercept + shift) * factor
    if isinstance(decision, Linear):
        decision = Linear(decision.coefficients * factor, intercept)
    else:
        decision = decision._replace(weights=decision.weights * factor, intercept=intercept)
    return replace(result, decision=decision, unlabeled_scores=(result.unlabeled_scores + shift) * factor)
