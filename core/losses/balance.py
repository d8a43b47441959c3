"""The balance constraint: which share of the unlabeled rows is positive."""

import math
from typing import NamedTuple

import numpy as np

from core.engine.runner import Vector
from core.numerics.compiled import compiled
from core.numerics.logistic import logistic
from core.options.base import BalancedOptions
from core.problem.problem import Problem

_ROOT_ERROR = 1e-10
_MAX_STEPS = 500


def positive_fraction(problem: Problem, options: BalancedOptions) -> float:
    """The fraction asked for, or that of the labeled rows: a solver alone estimates nothing (core.train does, before it)."""
    return problem.labeled_fraction() if isinstance(options.positive_fraction, str) else options.positive_fraction


def threshold_labels(scores: Vector, fraction: float) -> Vector:
    """+1 for the ``round(fraction · u)`` largest scores, -1 for the rest (Initialization of Table 4); ties by position."""
    labels = np.full(len(scores), -1.0)
    count = round(fraction * len(scores))
    if count:
        labels[np.argsort(-scores, kind="stable")[:count]] = 1.0
    return labels


class Beliefs(NamedTuple):
    """p of Eqn. 15 and the multiplier ν that balances it."""

    positive: Vector
    """p, shape (n_unlabeled,): belief that a row is positive"""
    multiplier: float


@compiled
def label_gains(scores: Vector, gains: Vector) -> None:
    """``g = max(0, 1 − o)² − max(0, 1 + o)²``: what believing in +1 costs more than believing in −1, in units of λ'."""
    for j in range(len(scores)):
        below, above = max(0.0, 1.0 - scores[j]), max(0.0, 1.0 + scores[j])
        gains[j] = below * below - above * above


def balanced_beliefs(gains: Vector, weights: Vector, fraction: float, temperature: float, start: float | None = None) -> Beliefs:
    """The p that minimises Eqn. 8 for given scores under ``Σ weights · p = fraction`` (Eqn. 9).

    ``gains`` are g of Table 6, in the units of ``temperature``; ``weights`` sum to 1; both of shape (n_unlabeled,). ``start`` is a guess of ν, as
    from the last call.
    Source: Table 6 of Sindhwani & Keerthi 2006. Newton's method runs on the logit of the mean belief, where the balance is nearly a straight
    line even when all beliefs are at their ends, and halves the bracket whenever a step leaves it.
    """
    if fraction in (0.0, 1.0):
        return Beliefs(np.full(len(gains), fraction), math.copysign(math.inf, fraction - 0.5))
    odds = math.log(fraction / (1 - fraction))
    low, high = float(gains.min()) + temperature * odds, float(gains.max()) + temperature * odds
    multiplier = (low + high) / 2 if start is None or not low < start < high else start
    for _ in range(_MAX_STEPS):
        positive = logistic((gains - multiplier) / temperature)
        mean = float(weights @ positive)
        if abs(mean - fraction) <= _ROOT_ERROR or high - low <= _ROOT_ERROR * temperature:
            break
        low, high = (multiplier, high) if mean < fraction else (low, multiplier)
        following = multiplier
        slope = (mean - float(weights @ (positive * positive))) / temperature
        if slope > 0 and 0 < mean < 1:
            following += (odds - math.log(mean / (1 - mean))) * mean * (1 - mean) / slope
        multiplier = following if low < following < high else (low + high) / 2
    return Beliefs(positive, multiplier)


def entropy(positive: Vector, weights: Vector) -> float:
    """Weighted mean entropy of beliefs, in nats (Eqn. 17)."""
    negative = 1.0 - positive
    return -float(weights @ (_times_log(positive, positive) + _times_log(negative, negative)))


def divergence(positive: Vector, last: Vector, weights: Vector) -> float:
    """Weighted mean Kullback-Leibler divergence of beliefs from their last values, in nats (Eqn. 16); infinite where those were certain."""
    negative, last_negative = 1.0 - positive, 1.0 - last
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = positive / last, negative / last_negative
    return float(weights @ (_times_log(positive, ratios[0]) + _times_log(negative, ratios[1])))


def _times_log(beliefs: Vector, of: Vector) -> Vector:
    """``p log of``, 0 where p is 0. NumPy's vectorised logarithm takes a tenth of the time of scipy.special's functions."""
    return beliefs * np.log(np.where(beliefs > 0.0, of, 1.0))
