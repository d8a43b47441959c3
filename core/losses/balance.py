"""The balance constraint: which share of the unlabeled rows is positive."""

import math
from typing import NamedTuple

import numpy as np

from core.numerics.compiled import compiled
from core.numerics.compiled_elementary import exp_of, log_of
from core.numerics.elementary import logit_of
from core.numerics.vectors import Vector, lane_sum
from core.options.base import BalancedOptions
from core.problem.problem import Problem

_ROOT_ERROR = 1e-10
_MAX_STEPS = 500
_TILE = 512
"""rows whose terms are written down before they are added up"""
_LARGEST_POWER = 700.0
_LEAST_PROBABILITY = 1e-300


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


class BalancedProbabilities(NamedTuple):
    """p of Eqn. 15 and the multiplier ν that balances it."""

    positive: Vector
    """p, shape (n_unlabeled,): probability that a row is positive"""
    multiplier: float


@compiled
def label_gains(scores: Vector, gains: Vector) -> None:
    """``g = max(0, 1 − o)² − max(0, 1 + o)²``: what the label +1 costs more than the label −1, in units of λ'."""
    for j in range(len(scores)):
        below, above = max(0.0, 1.0 - scores[j]), max(0.0, 1.0 + scores[j])
        gains[j] = below * below - above * above


def balanced_probabilities(gains: Vector, weights: Vector, fraction: float, temperature: float, start: float | None = None) -> BalancedProbabilities:
    """The p that minimises Eqn. 8 for given scores under ``Σ weights · p = fraction`` (Eqn. 9).

    ``gains`` are g of Table 6, in the units of ``temperature``; ``weights`` sum to 1; both of shape (n_unlabeled,). ``start`` is a guess of ν, as
    from the last call.
    Source: Table 6 of Sindhwani & Keerthi 2006. Newton's method runs on the logit of the mean probability, where the balance is nearly a straight
    line even when all probabilities are at their ends, and halves the bracket whenever a step leaves it.
    """
    if fraction in (0.0, 1.0):
        return BalancedProbabilities(np.full(len(gains), fraction), math.copysign(math.inf, fraction - 0.5))
    positive, odds = np.empty_like(gains), logit_of(fraction)
    low, high = float(gains.min()) + temperature * odds, float(gains.max()) + temperature * odds
    multiplier = (low + high) / 2 if start is None or not low < start < high else start
    for _ in range(_MAX_STEPS):
        mean, square = _probabilities(gains, weights, multiplier, temperature, positive)
        if abs(mean - fraction) <= _ROOT_ERROR or high - low <= _ROOT_ERROR * temperature:
            break
        low, high = (multiplier, high) if mean < fraction else (low, multiplier)
        following = multiplier
        slope = (mean - square) / temperature
        if slope > 0 and 0 < mean < 1:
            following += (odds - logit_of(mean)) * mean * (1 - mean) / slope
        multiplier = following if low < following < high else (low + high) / 2
    return BalancedProbabilities(positive, multiplier)


@compiled
def _probabilities(gains: Vector, weights: Vector, multiplier: float, temperature: float, positive: Vector) -> tuple[float, float]:
    """Writes p = 1 / (1 + exp((g − ν) / T)) to ``positive``; returns its weighted mean and that of its square."""
    means, squares, mean, square = np.empty(_TILE), np.empty(_TILE), 0.0, 0.0
    for start in range(0, len(gains), _TILE):
        stop = min(start + _TILE, len(gains))
        for j in range(start, stop):
            found = 1.0 / (1.0 + exp_of(min((gains[j] - multiplier) / temperature, _LARGEST_POWER)))
            positive[j] = found
            means[j - start] = weights[j] * found
            squares[j - start] = weights[j] * (found * found)
        mean += lane_sum(means, stop - start)
        square += lane_sum(squares, stop - start)
    return mean, square


@compiled
def entropy(positive: Vector, weights: Vector) -> float:
    """Weighted mean entropy of probabilities, in nats (Eqn. 17)."""
    terms, found = np.empty(_TILE), 0.0
    for start in range(0, len(positive), _TILE):
        stop = min(start + _TILE, len(positive))
        for j in range(start, stop):
            one = positive[j]
            other = 1.0 - one
            terms[j - start] = weights[j] * (one * log_of(max(one, _LEAST_PROBABILITY)) + other * log_of(max(other, _LEAST_PROBABILITY)))
        found += lane_sum(terms, stop - start)
    return -found


@compiled
def divergence(positive: Vector, last: Vector, weights: Vector) -> float:
    """Weighted mean Kullback-Leibler divergence of probabilities from their last values, in nats (Eqn. 16); infinite where those were certain and
    these are not."""
    terms, found = np.empty(_TILE), 0.0
    for start in range(0, len(positive), _TILE):
        stop = min(start + _TILE, len(positive))
        for j in range(start, stop):
            one, before = positive[j], last[j]
            other, other_before = 1.0 - one, 1.0 - before
            left = one * (log_of(max(one, _LEAST_PROBABILITY)) - log_of(max(before, _LEAST_PROBABILITY)))
            right = other * (log_of(max(other, _LEAST_PROBABILITY)) - log_of(max(other_before, _LEAST_PROBABILITY)))
            impossible = (one > 0.0 and before == 0.0) or (other > 0.0 and other_before == 0.0)
            terms[j - start] = np.inf if impossible else weights[j] * (left + right)
        found += lane_sum(terms, stop - start)
    return found
