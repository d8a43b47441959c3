"""Adds candidates: their scores and class fractions.

Scores are added by a logarithmic opinion pool, and class fractions by their mean. Few labels do not say reliably which
candidate is best. Their mistakes differ, so that the sum is about as good as the best of them, or better. What labels
left out do say goes into the weights.

How sure the sum may be says co-validation: how often models of different kinds agree on the unlabeled documents. A few
labels left out say little of how often a model is right. Naive Bayes models the documents of a class, an SVM the
border between classes: they are wrong of different documents, so that the share on which they agree is near the share
that their sum has right. Source: Madani, Pennock & Flake, Co-validation: using model disagreement on unlabeled data to
validate classification algorithms, 2004.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.binomial import QUARTILE, wilson_interval
from core.numerics.elementary import Vector, exp
from core.one_vs_rest import labels_of
from core.problem import Linear, Result, Status, unlabeled_scores
from core.progress import Checkpoint
from core.selection.candidates import Candidate
from core.validation.calibration import SLOPE, Calibration, calibration_at

_LEAST_WEIGHT = 0.03
"""weight below which a candidate has no part in a stack"""
KEPT_OF_COUNTS, KEPT_OF_ANSWERS = 0.75, 0.5
"""share of the log-odds by which the sum is brought to fractions that are left: of estimates by numbers of labels, and
by answers"""


class Member(NamedTuple):
    """A candidate's solutions as a part of a stack."""

    weight: float
    columns: NDArray[np.int64]
    """of the features that it has, among all"""
    results: Sequence[Result]
    """a solution for each two-class problem"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions without their labels"""
    calibration: Calibration
    """of these scores"""
    generative: bool = False
    """whether it models the documents of a class"""
    dense: bool = False
    """whether it has rows of numbers"""


class Stack(NamedTuple):
    """The sum of members."""

    results: list[Result]
    """a solution over all features for each two-class problem; with scores of the unlabeled rows alone where a member
    is not linear"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions without their labels"""


def stack_weights(candidates: Sequence[Candidate]) -> Vector:
    """The weights of candidates, shape (n,), summing to 1: their odds over the fourth power of their logarithmic losses
    on labels left out; 0 of those that would hardly count.

    One nat more is lost by each, so that a handful of labels that are all right prove nothing. Where no label could be
    left out, what learns from unlabeled documents weighs the same, and nothing else does.
    """
    losses = np.array([1.0 - candidate.judgement.log_likelihood for candidate in candidates])
    learned = np.array([candidate.uses_unlabeled for candidate in candidates])
    if not np.isfinite(losses).any():
        weights = np.ones(len(candidates))
    elif learned.any() and not any(candidate.judgement.chance for candidate in candidates):
        weights = np.where(learned & np.isfinite(losses), 1.0, 0.0)
    else:
        weights = np.array([candidate.odds for candidate in candidates]) * np.square(np.square(losses.min() / losses))
    # among the candidates of many parts even the heaviest may have less than that of the sum
    least = min(_LEAST_WEIGHT * weights.sum(), weights.max() / 2)
    weights = np.where(weights < least, 0.0, weights)
    return np.asarray(weights / weights.sum())


def pooled_fractions(candidates: Sequence[Candidate], weights: Vector) -> Vector | None:
    """The class fractions, shape (n_classes,): the mean of the candidates' estimates by these weights; None if there
    are none. Where only the supervised SVM weighs, which has no estimate, all others count the same.
    """
    pairs = [
        (weight, each.found.fractions)
        for weight, each in zip(weights.tolist(), candidates, strict=True)
        if each.found is not None
    ]
    if not pairs:
        return None
    total, first = sum(weight for weight, _ in pairs), pairs[0][1]
    shares = [weight / total if total else 1 / len(pairs) for weight, _ in pairs]
    return reduce(
        np.add, [first, *(share * (fractions - first) for share, (_, fractions) in zip(shares, pairs, strict=True))]
    )  # exact where all agree


def stack(members: Sequence[Member], n_features: int) -> Stack:
    """The pooled solutions over all features, and their held-out scores.

    A member's probabilities are ``p_c ∝ odds_c exp(slope_c · score_c + offset_c)``. Their weighted geometric mean is of
    the same form, with the weighted mean of the logarithms in the exponent: of linear scores that is a linear score. It
    is divided by SLOPE, the usual size of a slope. The objective is that of the first member. With a member that is not
    linear, the scores have no model yet (core.selection.methods.kernel_regression).
    """
    scales = [each.weight / SLOPE * each.calibration.slopes for each in members]
    shifts = [each.weight / SLOPE * (each.calibration.offsets + each.calibration.log_odds) for each in members]
    held_out = reduce(
        np.add, [each.held_out * scale + shift for each, scale, shift in zip(members, scales, shifts, strict=True)]
    )
    pooled = []
    for problem in range(len(members[0].results)):
        own = [
            _Share(each.columns, each.results[problem], scale[problem], shift[problem])
            for each, scale, shift in zip(members, scales, shifts, strict=True)
        ]
        pooled.append(_sum_of_shares(own, n_features))
    return Stack(pooled, held_out)


def met_fractions(
    pooled: Stack, members: Sequence[Member], fractions: Vector, kept: float, checkpoint: Checkpoint
) -> Vector:
    """The class fractions, shape (n_classes,), between ``fractions`` and those by the members' probabilities before
    they were brought to these.

    Of the log-odds of classes that bring the mean probabilities to ``fractions`` the share ``kept`` is left. Sigmoids
    that were fitted to labels left out err otherwise than answers that were counted, and than numbers of labels.
    """
    scores = unlabeled_scores(pooled.results)
    slopes, offsets = np.full(len(fractions), SLOPE), np.zeros(len(fractions))
    matched = calibration_at(slopes, offsets, scores, fractions, checkpoint).log_odds
    own = reduce(np.add, [each.weight * each.calibration.log_odds for each in members])
    # the scores have ``own`` already, and would have ``own + matched`` in all
    left = Calibration(slopes, kept * (own + matched) - own, np.ones(len(fractions)))
    return np.asarray(left.probabilities(scores[np.isfinite(scores).all(axis=1)]).mean(axis=0))


class _Share(NamedTuple):
    """A member's solution of one two-class problem, with its scale and shift in the sum."""

    columns: NDArray[np.int64]
    result: Result
    scale: float
    shift: float


def _sum_of_shares(shares: Sequence[_Share], n_features: int) -> Result:
    coefficients, intercept = np.zeros(n_features), 0.0
    results = [share.result for share in shares]
    other = next((result.decision for result in results if not isinstance(result.decision, Linear)), None)
    for columns, result, scale, shift in shares:
        if isinstance(result.decision, Linear):
            coefficients[columns] += result.decision.coefficients * scale
            intercept += result.decision.intercept * scale + shift
    return Result(
        decision=Linear(coefficients, float(intercept)) if other is None else other,
        unlabeled_scores=reduce(
            np.add, [share.result.unlabeled_scores * share.scale + share.shift for share in shares]
        ),
        objective=results[0].objective,
        status=reduce(Status.worse, (result.status for result in results)),
        trace=tuple(point for result in results for point in result.trace),
        passes=sum(result.passes for result in results),
    )


class Choice(NamedTuple):
    """A choice among candidates."""

    places: list[tuple[int, float]]
    """positions of the candidates that have a part in the model, with their weights, the largest first"""
    fractions: NDArray[np.float64] | None
    """shape (n_classes,): class fractions of the unlabeled documents; None if there are none of these"""
    counted: bool
    """whether numbers of labels are evidence of them, as those of a random sample"""


def choose(candidates: Sequence[Candidate], complete: Sequence[float]) -> Choice:
    """Weigh candidates by labels left out; of equals the first comes first.

    An estimate of class fractions counts by the fourth power of ``complete``, of each candidate the share of the
    unlabeled documents that have every part that it learned from. To a method that knows vectors alone, all documents
    without one are the same.
    """
    weights = stack_weights(candidates)
    fractions = pooled_fractions(candidates, weights * np.square(np.square(complete)))
    weighted = [(place, float(weight)) for place, weight in enumerate(weights) if weight]
    counted = any(each.found.counts_used for each in candidates if each.found is not None)
    return Choice(sorted(weighted, key=lambda each: -each[1]), fractions, counted)


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
    plain = Calibration.plain(n_columns, len(fractions))
    shifts = calibration_at(plain.slopes, plain.offsets, scores, fractions, checkpoint).log_odds / SLOPE
    scores += shifts
    share = (
        min(agreement, _most_right(pooled.held_out + shifts, class_indices, fractions))
        if generative.dense
        else agreement
    )
    factor = _factor(scores[:: 1 + scores.size // _ENOUGH], plain, share, checkpoint)
    results = [_scaled(result, factor, float(shift)) for result, shift in zip(pooled.results, shifts, strict=True)]
    return CoValidated(Stack(results, (pooled.held_out + shifts) * factor), agreement)


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
