"""Adds what candidates know: a logarithmic opinion pool of linear scores, and the mean of the class fractions that they estimate.

Few labels do not say reliably which candidate is best. Their mistakes differ, so that the sum is about as good as the best of them, or better. What
labels left out do say goes into the weights.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import exp, log
from core.problem.result import Linear, Result, Status
from core.selection.candidates import Candidate
from core.validation.calibration import SLOPE, Calibration

Vector = NDArray[np.float64]

_LEAST_WEIGHT = 0.03
"""weight below which a candidate has no part in a stack"""
SUPERVISED_ODDS = 0.1
"""odds of what learns from labels alone against the best that learns from unlabeled documents, before labels left out are asked"""
_MOST_NATS = 50.0


class Member(NamedTuple):
    """A candidate's solutions as a part of a stack."""

    weight: float
    columns: NDArray[np.int64]
    """of the features that it has, among all"""
    results: Sequence[Result]
    """a linear solution for each two-class problem"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions without their labels"""
    calibration: Calibration
    """of these scores"""


def weights_by_loss(log_likelihoods: Sequence[float]) -> Vector:
    """The weight of each candidate, the best one having 1: inverse to the square of its logarithmic loss on labels left out.

    One nat more is lost by each, so that a handful of labels that are all right prove nothing.
    """
    losses = 1.0 - np.asarray(log_likelihoods, np.float64)
    least = float(losses.min())
    return np.square(least / losses) if np.isfinite(least) else np.ones(len(losses))


def stack_weights(candidates: Sequence[Candidate]) -> list[float]:
    """The weights of candidates in a stack, 0 of those that would hardly count; they sum to 1.

    The supervised SVM is hardly ever much better than what learns from unlabeled documents, and often much worse. It has small odds, which all of the
    likelihood multiplies: where clusters mislead, labels left out say so, and it takes over. Where no label could be left out it has none.
    """
    known = np.array([candidate.judgement.log_likelihood for candidate in candidates])
    learned = np.array([candidate.learns for candidate in candidates])
    if not learned.any() or not np.isfinite(known[learned]).any():
        weights = weights_by_loss(known.tolist())
    else:
        weights = np.zeros(len(candidates))
        weights[learned] = weights_by_loss(known[learned].tolist())
        if any(candidate.judgement.chance for candidate in candidates):
            nats = np.clip(known[~learned] - known[learned].max(), -_MOST_NATS, _MOST_NATS)
            weights[~learned] = SUPERVISED_ODDS * exp(nats)
    weights /= weights.sum()
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
    return [float(weight) for weight in weights / weights.sum()]


def pooled_fractions(candidates: Sequence[Candidate]) -> Vector | None:
    """The class fractions, shape (n_classes,): the mean of the candidates' estimates, weighed by their losses; None if there are none."""
    pairs = [(each.judgement.log_likelihood, each.found.fractions) for each in candidates if each.found is not None]
    if not pairs:
        return None
    weights = weights_by_loss([log_likelihood for log_likelihood, _ in pairs])
    weights /= weights.sum()
    return _sum_of([weight * fractions for weight, (_, fractions) in zip(weights, pairs, strict=True)])


def stack(members: Sequence[Member], n_features: int) -> tuple[list[Result], NDArray[np.float64]]:
    """The pooled solutions over all features, one a two-class problem, and their held-out scores, shape (n_labeled, n_problems).

    A member's probabilities are ``p_c ∝ odds_c exp(slope_c · score_c + offset_c)``. Their weighted geometric mean is of the same form, with the
    weighted mean of the logarithms in the exponent: of linear scores that is a linear score. It is divided by SLOPE, the usual size of a slope.
    The objective is that of the first member.
    """
    scales = [each.weight / SLOPE * each.calibration.slopes for each in members]
    shifts = [each.weight / SLOPE * (each.calibration.offsets + _log_odds(each.calibration)) for each in members]
    held_out = _sum_of([each.held_out * scale + shift for each, scale, shift in zip(members, scales, shifts, strict=True)])
    pooled = []
    for problem in range(len(members[0].results)):
        own = [
            _Share(each.columns, each.results[problem], scale[problem], shift[problem])
            for each, scale, shift in zip(members, scales, shifts, strict=True)
        ]
        pooled.append(_sum_of_shares(own, n_features))
    return pooled, held_out


class _Share(NamedTuple):
    """A member's solution of one two-class problem, and what makes it a part of the sum."""

    columns: NDArray[np.int64]
    result: Result
    scale: float
    shift: float


def _sum_of_shares(shares: Sequence[_Share], n_features: int) -> Result:
    coefficients, intercept = np.zeros(n_features), 0.0
    for columns, result, scale, shift in shares:
        assert isinstance(result.decision, Linear)
        coefficients[columns] += result.decision.coefficients * scale
        intercept += result.decision.intercept * scale + shift
    results = [share.result for share in shares]
    return Result(
        decision=Linear(coefficients, float(intercept)),
        unlabeled_scores=_sum_of([share.result.unlabeled_scores * share.scale + share.shift for share in shares]),
        objective=results[0].objective,
        status=reduce(Status.worse, (result.status for result in results)),
        trace=tuple(point for result in results for point in result.trace),
        passes=sum(result.passes for result in results),
    )


def _sum_of(terms: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sum of arrays of one shape, in their order."""
    return reduce(np.add, terms)


def _log_odds(calibration: Calibration) -> Vector:
    """The logarithms of the odds by columns: of two classes, which have one column, that of the second against the first."""
    logs = log(calibration.odds)
    return np.asarray(logs[1:] - logs[:1] if len(calibration.slopes) == 1 else logs)
