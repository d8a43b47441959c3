"""Adds candidates: their scores and class fractions.

Scores are added by a logarithmic opinion pool, and class fractions by their mean. Few labels do not say reliably which
candidate is best. Their mistakes differ, so that the sum is about as good as the best of them, or better. What labels
left out do say goes into the weights.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.problem.result import Linear, Result, Status, unlabeled_scores
from core.progress import Checkpoint
from core.selection.candidates import Candidate
from core.validation.calibration import SLOPE, Calibration, calibration_at

Vector = NDArray[np.float64]

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
    weights = np.where(weights < _LEAST_WEIGHT * weights.sum(), 0.0, weights)
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
    return _sum_of(
        [first, *(share * (fractions - first) for share, (_, fractions) in zip(shares, pairs, strict=True))]
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
    held_out = _sum_of(
        [each.held_out * scale + shift for each, scale, shift in zip(members, scales, shifts, strict=True)]
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
    own = _sum_of([each.weight * each.calibration.log_odds for each in members])
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
        unlabeled_scores=_sum_of([share.result.unlabeled_scores * share.scale + share.shift for share in shares]),
        objective=results[0].objective,
        status=reduce(Status.worse, (result.status for result in results)),
        trace=tuple(point for result in results for point in result.trace),
        passes=sum(result.passes for result in results),
    )


def _sum_of(terms: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sum of arrays of one shape, in their order."""
    return reduce(np.add, terms)


class Choice(NamedTuple):
    """A choice among candidates."""

    places: list[tuple[int, float]]
    """positions of the candidates that have a part in the model, with their weights, the largest first"""
    fractions: NDArray[np.float64] | None
    """shape (n_classes,): class fractions of the unlabeled documents; None if there are none of these"""
    counted: bool
    """whether numbers of labels are evidence of them, as those of a random sample"""


def choose(candidates: Sequence[Candidate]) -> Choice:
    """Weigh candidates by labels left out; of equals the first comes first."""
    weights = stack_weights(candidates)
    weighted = [(place, float(weight)) for place, weight in enumerate(weights) if weight]
    counted = any(each.found.counts_used for each in candidates if each.found is not None)
    return Choice(sorted(weighted, key=lambda each: -each[1]), pooled_fractions(candidates, weights), counted)
