"""Chooses among candidates and adds what they know.

Linear scores are added by a logarithmic opinion pool, and class fractions by their mean. Few labels do not say reliably
which candidate is best. Their mistakes differ, so that the sum is about as good as the best of them, or better. What
labels left out do say goes into the weights.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import exp, log_of
from core.problem.result import Linear, Result, Status
from core.selection.candidates import Candidate
from core.selection.comparison import judge
from core.validation.calibration import SLOPE, Calibration, fit_sigmoids

Vector = NDArray[np.float64]

_LEAST_WEIGHT = 0.03
"""weight below which a candidate has no part in a stack"""
SUPERVISED_ODDS = 0.1
"""odds of what learns from labels alone against what learns from unlabeled documents, before labels left out are
asked"""
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
    generative: bool = False
    """whether it models the documents of a class"""
    dense: bool = False
    """whether it has rows of numbers"""


class Stack(NamedTuple):
    """The sum of members."""

    results: list[Result]
    """a linear solution over all features for each two-class problem"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions without their labels"""


def weights_by_loss(log_likelihoods: Sequence[float]) -> Vector:
    """The weight of each candidate, the best one having 1: inverse to the square of its logarithmic loss on labels left
    out.

    One nat more is lost by each, so that a handful of labels that are all right prove nothing.
    """
    losses = 1.0 - np.asarray(log_likelihoods, np.float64)
    least = float(losses.min())
    return np.square(least / losses) if np.isfinite(least) else np.ones(len(losses))


def stack_weights(candidates: Sequence[Candidate], class_indices: NDArray[np.integer[Any]]) -> list[float]:
    """The weights of candidates in a stack, 0 of those that would hardly count; they sum to 1. ``class_indices`` are
    the classes of the labeled rows.

    Three pools are compared: of what learns from unlabeled documents, of all candidates, and of the supervised SVM. The
    supervised SVM is hardly ever much better than what learns from unlabeled documents, and often much worse. So a pool
    with it has small odds, which all of the likelihood of its sum multiplies: where clusters mislead, or labels are
    many, labels left out say so. The weights are the mean of the pools'. Where no label could be left out the
    supervised SVM has none.
    """
    log_likelihoods = np.array([candidate.judgement.log_likelihood for candidate in candidates])
    learned, finite = np.array([candidate.uses_unlabeled for candidate in candidates]), np.isfinite(log_likelihoods)
    if not (learned & finite).any():
        weights = weights_by_loss(log_likelihoods.tolist())
    elif not (~learned & finite).any() or not any(candidate.judgement.chance for candidate in candidates):
        weights = _pool(log_likelihoods, learned)
    else:
        pools = [_pool(log_likelihoods, members) for members in (learned, np.ones_like(learned), ~learned)]
        weights = _mean_pool(pools, candidates, class_indices)
    weights /= weights.sum()
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
    return [float(weight) for weight in weights / weights.sum()]


def _pool(log_likelihoods: Vector, members: NDArray[np.bool_]) -> Vector:
    """The weights of these members by their log-likelihoods, summing to 1; 0 of the others."""
    weights = np.zeros(len(log_likelihoods))
    weights[members] = weights_by_loss(log_likelihoods[members].tolist())
    return np.asarray(weights / weights.sum())


def _mean_pool(
    pools: Sequence[Vector], candidates: Sequence[Candidate], class_indices: NDArray[np.integer[Any]]
) -> Vector:
    """The mean of pools, each weighing by its odds and the likelihood of labels left out by its sum; all but the first
    have small odds.
    """
    useful = [place for place in range(len(candidates)) if any(pool[place] for pool in pools)]
    log_odds = {place: _held_out_log_odds(candidates[place].held_out, class_indices) for place in useful}
    left_out = np.all([np.isfinite(each).all(axis=1) for each in log_odds.values()], axis=0)
    sums = [_sum_of([pool[place] * log_odds[place][left_out] for place in useful]) for pool in pools]
    nats = np.array([judge(each, class_indices[left_out]).log_likelihood for each in sums])
    odds = np.where(np.arange(len(pools)) > 0, SUPERVISED_ODDS, 1.0) * exp(np.maximum(nats - nats.max(), -_MOST_NATS))
    return _sum_of([pool * share for pool, share in zip(pools, odds / odds.sum(), strict=True)])


def _held_out_log_odds(held_out: NDArray[np.float64], class_indices: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Log-odds of labels left out by sigmoids of a candidate's scores, both of shape (n_labeled, n_problems)."""
    left_out = np.isfinite(held_out).all(axis=1)
    slopes, offsets = fit_sigmoids(held_out[left_out], class_indices[left_out])
    return held_out * slopes + offsets


def pooled_fractions(candidates: Sequence[Candidate]) -> Vector | None:
    """The class fractions, shape (n_classes,): the mean of the candidates' estimates; None if there are none.

    Each weighs the square of what its scores weigh. Errors of scores are mostly a document's own, and get smaller in a
    sum. Those of fractions are one bias for all documents.
    """
    pairs = [(each.judgement.log_likelihood, each.found.fractions) for each in candidates if each.found is not None]
    if not pairs:
        return None
    weights = np.square(weights_by_loss([log_likelihood for log_likelihood, _ in pairs]))
    weights /= weights.sum()
    first = pairs[0][1]
    return _sum_of(
        [first, *(weight * (fractions - first) for weight, (_, fractions) in zip(weights, pairs, strict=True))]
    )  # exact where all agree


def stack(members: Sequence[Member], n_features: int) -> Stack:
    """The pooled solutions over all features, and their held-out scores.

    A member's probabilities are ``p_c ∝ odds_c exp(slope_c · score_c + offset_c)``. Their weighted geometric mean is of
    the same form, with the weighted mean of the logarithms in the exponent: of linear scores that is a linear score. It
    is divided by SLOPE, the usual size of a slope. The objective is that of the first member.
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


class Choice(NamedTuple):
    """A choice among candidates."""

    places: list[tuple[int, float]]
    """positions of the candidates that have a part in the model, with their weights, the largest first"""
    fractions: NDArray[np.float64] | None
    """shape (n_classes,): class fractions of the unlabeled documents; None if there are none of these"""


def choose(candidates: Sequence[Candidate], class_indices: NDArray[np.integer[Any]]) -> Choice:
    """Choose by labels left out; ``class_indices`` are the classes of the labeled rows.

    Candidates whose scores are linear are added; another is chosen alone, where it predicts best of all.
    One that learns from labels alone has small odds to be alone. Of equals, as where no label can be left out, those
    that learn from unlabeled documents are preferred, then the first.
    """
    best = max(range(len(candidates)), key=lambda place: (*_merit(candidates[place]), -place))
    # fractions by what is not linear are further off on most dense documents: only where it predicts best are they
    # asked for
    fractions = pooled_fractions([each for place, each in enumerate(candidates) if each.linear or place == best])
    if not candidates[best].linear:
        return Choice([(best, 1.0)], fractions)
    linear = [place for place, candidate in enumerate(candidates) if candidate.linear]
    weights = stack_weights([candidates[place] for place in linear], class_indices)
    weighted = [(place, weight) for place, weight in zip(linear, weights, strict=True) if weight]
    return Choice(sorted(weighted, key=lambda each: -each[1]), fractions)


def _merit(candidate: Candidate) -> tuple[float, bool]:
    odds = 1.0 if candidate.linear or candidate.uses_unlabeled else SUPERVISED_ODDS
    return candidate.judgement.log_likelihood + log_of(odds), candidate.uses_unlabeled
