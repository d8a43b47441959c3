"""The balance constraint: which share of the unlabeled rows is positive."""

import math
from typing import NamedTuple

import numpy as np

from core.numerics.compiled import compiled, exp_of, log_of
from core.numerics.elementary import logit_of
from core.numerics.vectors import Vector, lane_sum
from core.options.base import BalancedOptions
from core.problem import Problem

_ROOT_ERROR = 1e-10
_MAX_STEPS = 500
_TILE = 512
"""rows whose terms are written down before they are added up"""
_LARGEST_POWER = 700.0
_LEAST_PROBABILITY = 1e-300


def positive_fraction(problem: Problem, options: BalancedOptions) -> float:
    """The fraction asked for, or the fraction of the labeled rows: a solver alone estimates nothing (core.train does,
    before it).
    """
    return problem.labeled_fraction() if isinstance(options.positive_fraction, str) else options.positive_fraction


def threshold_labels(scores: Vector, fraction: float) -> Vector:
    """+1 for the ``round(fraction · u)`` largest scores, -1 for the rest (Initialization of Table 4); ties by
    position."""
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
    """``g = max(0, 1 − o)² − max(0, 1 + o)²``: cost of the label +1 less cost of the label −1, in units of λ'."""
    for j in range(len(scores)):
        below, above = max(0.0, 1.0 - scores[j]), max(0.0, 1.0 + scores[j])
        gains[j] = below * below - above * above


def balanced_probabilities(
    gains: Vector, weights: Vector, fraction: float, temperature: float, start: float | None = None
) -> BalancedProbabilities:
    """The p that minimises Eqn. 8 for given scores under ``Σ weights · p = fraction`` (Eqn. 9).

    ``gains`` are g of Table 6, in the units of ``temperature``; ``weights`` sum to 1; both of shape (n_unlabeled,).
    ``start`` is a guess of ν, as from the last call. Source: Table 6 of Sindhwani & Keerthi 2006. Newton's method runs
    on the logit of the mean probability, where the balance is nearly a straight line even when all probabilities are at
    their ends, and halves the bracket whenever a step leaves it.
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
def _probabilities(
    gains: Vector, weights: Vector, multiplier: float, temperature: float, positive: Vector
) -> tuple[float, float]:
    """Writes p = 1 / (1 + exp((g − ν) / T)) to ``positive``; returns the weighted means of p and of its square."""
    terms, mean, square = np.empty(_TILE), 0.0, 0.0
    for start in range(0, len(gains), _TILE):
        stop = min(start + _TILE, len(gains))
        gain, weight, found = gains[start:stop], weights[start:stop], positive[start:stop]
        for j in range(len(gain)):
            found[j] = min((gain[j] - multiplier) / temperature, _LARGEST_POWER)
        for j in range(len(gain)):
            found[j] = 1.0 / (1.0 + exp_of(found[j]))
        for j in range(len(gain)):
            terms[j] = weight[j] * found[j]
        mean += lane_sum(terms, len(gain))
        for j in range(len(gain)):
            terms[j] = weight[j] * (found[j] * found[j])
        square += lane_sum(terms, len(gain))
    return mean, square


@compiled
def entropy(positive: Vector, weights: Vector) -> float:
    """Weighted mean entropy of probabilities, in nats (Eqn. 17)."""
    terms, found = np.empty(_TILE), 0.0
    for start in range(0, len(positive), _TILE):
        stop = min(start + _TILE, len(positive))
        one, weight = positive[start:stop], weights[start:stop]
        for j in range(len(one)):
            terms[j] = one[j] * log_of(max(one[j], _LEAST_PROBABILITY))
        for j in range(len(one)):
            terms[j] += (1.0 - one[j]) * log_of(max(1.0 - one[j], _LEAST_PROBABILITY))
        for j in range(len(one)):
            terms[j] *= weight[j]
        found += lane_sum(terms, len(one))
    return -found


@compiled
def divergence(positive: Vector, last: Vector, weights: Vector) -> float:
    """Weighted mean Kullback-Leibler divergence of probabilities from their last values, in nats (Eqn. 16); infinite
    where those were certain and these are not."""
    terms, found = np.empty(_TILE), 0.0
    for start in range(0, len(positive), _TILE):
        stop = min(start + _TILE, len(positive))
        one, before, weight = positive[start:stop], last[start:stop], weights[start:stop]
        for j in range(len(one)):
            terms[j] = one[j] * (log_of(max(one[j], _LEAST_PROBABILITY)) - log_of(max(before[j], _LEAST_PROBABILITY)))
        for j in range(len(one)):
            terms[j] += (1.0 - one[j]) * (
                log_of(max(1.0 - one[j], _LEAST_PROBABILITY)) - log_of(max(1.0 - before[j], _LEAST_PROBABILITY))
            )
        for j in range(len(one)):
            terms[j] *= weight[j]
        for j in range(len(one)):
            impossible = (one[j] > 0.0 and before[j] == 0.0) or (one[j] < 1.0 and before[j] == 1.0)
            terms[j] = np.inf if impossible else terms[j]
        found += lane_sum(terms, len(one))
    return found
