"""Pools what candidates know: the class fractions that they estimate, and the scores of those that are linear (a logarithmic opinion pool)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import exp, log
from core.problem.result import Linear, Result, Status
from core.validation.calibration import SLOPE, Calibration

Vector = NDArray[np.float64]

POOLED, STACKED = 0.2, 0.25
"""how much the log-likelihood of labels left out says of how far a candidate's fractions and scores are to be trusted: less than all of it, since
few labels tell candidates apart by chance"""
_LEAST_WEIGHT = 0.05
"""weight below which a candidate has no part in a stack"""


class Member(NamedTuple):
    """A candidate's solutions as a part of a stack."""

    weight: float
    results: Sequence[Result]
    """a linear solution for each two-class problem"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of the labeled rows by solutions without their labels"""
    calibration: Calibration
    """of these scores"""


def weights_of(log_likelihoods: Sequence[float], share: float) -> Vector:
    """The weight of each candidate, summing to 1: proportional to its likelihood to the power ``share``."""
    logs = share * np.asarray(log_likelihoods, np.float64)
    if not np.isfinite(logs.max()):
        return np.full(len(logs), 1 / len(logs))
    odds = exp(logs - logs.max())
    return np.asarray(odds / odds.sum())


def stack_weights(log_likelihoods: Sequence[float]) -> list[float]:
    """The weights of candidates in a stack, 0 of those that would hardly count; they sum to 1."""
    weights = weights_of(log_likelihoods, STACKED)
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
    return [float(weight) for weight in weights / weights.sum()]


def stack(members: Sequence[Member]) -> tuple[list[Result], NDArray[np.float64]]:
    """The pooled solutions, one a two-class problem, and their held-out scores, shape (n_labeled, n_problems).

    A member's probabilities are ``p_c ∝ odds_c exp(slope_c · score_c + offset_c)``. Their weighted geometric mean is of the same form, with the
    weighted mean of the logarithms in the exponent: of linear scores that is a linear score. It is divided by SLOPE, the usual size of a slope.
    The objective is that of the first member.
    """
    scales = [each.weight / SLOPE * each.calibration.slopes for each in members]
    shifts = [each.weight / SLOPE * (each.calibration.offsets + _log_odds(each.calibration)) for each in members]
    held_out = sum_of([each.held_out * scale + shift for each, scale, shift in zip(members, scales, shifts, strict=True)])
    pooled = []
    for column, first in enumerate(members[0].results):
        own = [(each.results[column], scale[column], shift[column]) for each, scale, shift in zip(members, scales, shifts, strict=True)]
        pooled.append(
            replace(
                first,
                decision=_pooled_decision(own),
                unlabeled_scores=sum_of([result.unlabeled_scores * scale + shift for result, scale, shift in own]),
                status=reduce(Status.worse, (result.status for result, _, _ in own)),
                trace=tuple(point for result, _, _ in own for point in result.trace),
                passes=sum(result.passes for result, _, _ in own),
            )
        )
    return pooled, held_out


def sum_of(terms: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sum of arrays of one shape, in their order."""
    return reduce(np.add, terms)


def _pooled_decision(own: Sequence[tuple[Result, float, float]]) -> Linear:
    coefficients, intercept = [], 0.0
    for result, scale, shift in own:
        assert isinstance(result.decision, Linear)
        coefficients.append(result.decision.coefficients * scale)
        intercept += result.decision.intercept * scale + shift
    return Linear(sum_of(coefficients), float(intercept))


def _log_odds(calibration: Calibration) -> Vector:
    """The logarithms of the odds by columns: of two classes, which have one column, that of the second against the first."""
    logs = log(calibration.odds)
    return np.asarray(logs[1:] - logs[:1] if len(calibration.slopes) == 1 else logs)
