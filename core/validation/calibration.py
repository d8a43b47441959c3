"""Calibration: Platt scaling of held-out scores, a sigmoid a column, and class weights that agree with the class
fractions.

A sigmoid separates one class from the rest. Its odds, ``exp(slope · score + offset)``, compare the class with the same
rest, so classes are weighed against each other by their odds. The sigmoids themselves all end at 1: they would leave a
document of two likely classes undecided, and were measured to be far too unsure (mean confidence .61 where .79 were
right).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import Vector, exp, expit, log, log_add_exp, log_sum_exp
from core.one_vs_rest import n_classes_of, positives_of
from core.progress import Checkpoint

SLOPE, _SLOPE_SPREAD = 2.0, 2.0
"""mean and standard deviation of the normal prior of the slope of a logistic function of held-out scores: at a score of
1 the odds are 7.4"""
LOG_SLOPE_SPREAD = 0.7
"""standard deviation of the normal prior of the logarithm of a slope that all scores of a method share, around that of
SLOPE"""
_OFFSET_SPREAD = 1.0
"""standard deviation of the normal prior of an offset, whose mean is 0"""
_TEMPERATURE_SPREAD, _TEMPERATURE_RANGE, _TEMPERATURES = 0.5, 2.5, 101
"""of the logarithm of the inverse temperature: standard deviation of its normal prior, bound on its size, and number of
values tried"""
_NEWTON_STEPS = 50
_LEAST_DESCENT = 1e-10
"""twice the distance to the minimum, by the last Newton step, at which that step ends the search: values closer than
rounding cannot be compared"""
_FITTING_ROUNDS = 200
_AT_ONCE = 1 << 20
"""likelihoods that are normalised between two checkpoints"""
_LEAST = 1e-12


def slopes_at(steps: Vector) -> Vector:
    """The slopes at these numbers of steps from SLOPE, in logarithms."""
    return np.asarray(SLOPE * exp(steps))


@dataclass(frozen=True)
class Calibration:
    """``p_c ∝ odds_c · exp(slopes_c · score_c + offsets_c)``; of two classes, which have one column of scores, the
    first has ``p ∝ odds``: with odds of 1 the second's probability is the sigmoid."""

    slopes: Vector
    """shape (n_columns,), above 0: a label never contradicts its probability within a column"""
    offsets: Vector
    """shape (n_columns,)"""
    odds: Vector
    """shape (n_classes,), above 0"""

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """shape (n_rows, n_classes), rows summing to 1."""
        return _normalised(_likelihoods(self.slopes, self.offsets, scores), self.odds)

    @classmethod
    def plain(cls, n_columns: int, n_classes: int) -> Self:
        """The calibration of scores that are logarithmic odds divided by SLOPE."""
        return cls(np.full(n_columns, SLOPE), np.zeros(n_columns), np.ones(n_classes))

    @property
    def log_odds(self) -> Vector:
        """The logarithms of the odds by columns, shape (n_columns,): of two classes the second against the first, in
        one column.
        """
        logs = log(self.odds)
        return np.asarray(logs[1:] - logs[:1] if len(self.slopes) == 1 else logs)

    def to_json(self) -> dict[str, list[float]]:
        """As it is stored with its model."""
        return {"slopes": self.slopes.tolist(), "offsets": self.offsets.tolist(), "odds": self.odds.tolist()}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json``."""
        return cls(*(np.asarray(stored[name], np.float64) for name in ("slopes", "offsets", "odds")))


def fit_calibration(
    held_out: NDArray[np.float64],
    class_indices: NDArray[np.integer[Any]],
    scores: NDArray[np.float64],
    fractions: Vector | None,
    checkpoint: Checkpoint = lambda: None,
) -> Calibration:
    """A calibration by held-out scores of labeled rows, shape (n_labeled, n_columns), NaN where no fold left the row
    out.

    ``class_indices`` are the rows' classes. The mean probabilities of unlabeled rows with these ``scores``, shape (n,
    n_columns), become ``fractions``, shape (n_classes,). If there are none of either, the mean probabilities of the
    labeled rows become the class fractions of the labels.
    """
    known = np.isfinite(held_out).all(axis=1)
    n_classes = n_classes_of(held_out.shape[1])
    if fractions is None or not len(scores):
        scores, fractions = held_out, np.bincount(class_indices, minlength=n_classes) / len(class_indices)
    slopes, offsets = fit_sigmoids(held_out[known], class_indices[known])
    if n_classes > 2 and known.any():
        factor = inverse_temperature(slopes * held_out[known] + offsets, class_indices[known])
        slopes, offsets = factor * slopes, factor * offsets
    return calibration_at(slopes, offsets, scores, fractions, checkpoint)


def calibration_at(
    slopes: Vector,
    offsets: Vector,
    scores: NDArray[np.float64],
    fractions: Vector,
    checkpoint: Checkpoint = lambda: None,
) -> Calibration:
    """The calibration by known sigmoids, with the odds by which rows with these ``scores`` have the mean probabilities
    ``fractions``.
    """
    n_classes, finite = n_classes_of(len(slopes)), np.isfinite(scores).all(axis=1)
    scores = scores if finite.all() else scores[finite]
    odds = (
        iterative_proportional_fitting(_likelihoods(slopes, offsets, scores), fractions, checkpoint)
        if len(scores)
        else np.ones(n_classes)
    )
    return Calibration(slopes, offsets, odds)


def fit_sigmoids(scores: NDArray[np.float64], class_indices: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
    """Slopes and offsets of the columns of scores, shape (n, n_columns), of rows of these classes."""
    positives = positives_of(n_classes_of(scores.shape[1]))
    fits = [
        fit_sigmoid(column, class_indices == positive) for column, positive in zip(scores.T, positives, strict=True)
    ]
    return np.array([slope for slope, _ in fits]), np.array([offset for _, offset in fits])


def fit_sigmoid(scores: Vector, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope a and offset b of ``P(positive | s) = 1 / (1 + exp(−(a s + b)))``.

    Platt scaling: maximum a posteriori under Platt's targets ``(n₊ + 1) / (n₊ + 2)`` and ``1 / (n₋ + 2)``. Both classes
    weigh the same in total, and no label more than one. The normal priors on a and b are ours: without them a few
    labels that happen to be separated ask for certainty. Newton's method with halved steps on a strictly convex
    function. Source: Lin, Lin & Weng, A note on Platt's probabilistic outputs, 2007.
    """
    n_positive, n_negative = int(np.count_nonzero(positive)), int(np.count_nonzero(~positive))
    if not (n_positive and n_negative):
        return SLOPE, 0.0
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    weights = min(n_positive, n_negative) / np.where(positive, n_positive, n_negative)
    slope, offset = SLOPE, 0.0

    def value(slope: float, offset: float) -> float:
        margins = slope * scores + offset
        losses = weights * (log_add_exp(np.zeros(1), margins) - targets * margins)
        return (
            float(losses.sum()) + 0.5 * _penalty(slope - SLOPE, _SLOPE_SPREAD) + 0.5 * _penalty(offset, _OFFSET_SPREAD)
        )

    for _ in range(_NEWTON_STEPS):
        probabilities = expit(slope * scores + offset)
        off, curvatures = weights * (probabilities - targets), weights * probabilities * (1 - probabilities)
        by_slope = float((off * scores).sum()) + (slope - SLOPE) / _SLOPE_SPREAD / _SLOPE_SPREAD
        by_offset = float(off.sum()) + offset / _OFFSET_SPREAD / _OFFSET_SPREAD
        # Newton's step, by Cramer's rule
        a = float((curvatures * scores * scores).sum()) + 1 / _SLOPE_SPREAD / _SLOPE_SPREAD
        b, c = float((curvatures * scores).sum()), float(curvatures.sum()) + 1 / _OFFSET_SPREAD / _OFFSET_SPREAD
        determinant = a * c - b * b
        to_slope, to_offset = (b * by_offset - c * by_slope) / determinant, (b * by_slope - a * by_offset) / determinant
        descent = by_slope * to_slope + by_offset * to_offset
        if descent > -_LEAST_DESCENT:
            return max(slope + to_slope, _LEAST), offset + to_offset
        length, before = 1.0, value(slope, offset)
        while (
            value(slope + length * to_slope, offset + length * to_offset) > before + 1e-4 * length * descent
            and length > 1e-10
        ):
            length /= 2
        slope, offset = slope + length * to_slope, offset + length * to_offset
    return max(slope, _LEAST), offset


def _penalty(distance: float, spread: float) -> float:
    return (distance / spread) * (distance / spread)


def inverse_temperature(margins: NDArray[np.float64], class_indices: NDArray[np.integer[Any]]) -> float:
    """Temperature scaling: the factor on all margins, shape (n_labeled, n_classes), by which the labels left out are
    likeliest.

    Each sigmoid is fitted to the few labels of its own class, and is as unsure as these are few. One factor for all
    classes is fitted to all labels. The classes have the priors of the labels; the logarithm of the factor has a normal
    prior.
    """
    log_priors = log(np.maximum(np.bincount(class_indices, minlength=margins.shape[1]), 1) / len(class_indices))
    log_factors = np.linspace(-_TEMPERATURE_RANGE, _TEMPERATURE_RANGE, _TEMPERATURES)
    factors = exp(log_factors)
    scored = []
    for factor, log_factor in zip(factors.tolist(), log_factors.tolist(), strict=True):
        logits = factor * margins + log_priors
        own = logits[np.arange(len(class_indices)), class_indices] - log_sum_exp(logits, axis=1)
        scored.append(float(own.sum()) - 0.5 * _penalty(log_factor, _TEMPERATURE_SPREAD))
    return float(factors[int(np.argmax(scored))])


def iterative_proportional_fitting(
    likelihoods: NDArray[np.float64], fractions: Vector, checkpoint: Checkpoint = lambda: None
) -> Vector:
    """Odds, shape (n_classes,), with which the normalised ``odds · likelihoods`` of all rows have the mean
    ``fractions``; their geometric mean is 1.

    It converges where every class has a likelihood above 0 somewhere. Classes whose fraction is 0 get odds next to 0.
    """
    odds = np.ones(likelihoods.shape[1])
    goal = np.maximum(fractions, _LEAST)
    for _ in range(_FITTING_ROUNDS):
        means = _mean_probabilities(likelihoods, odds, checkpoint)
        if float(np.abs(means - fractions).max()) < 1e-6:
            break
        odds = np.clip(odds * goal / np.maximum(means, _LEAST), _LEAST, 1 / _LEAST)
    return np.asarray(odds / exp(log(odds).mean(keepdims=True)))


def _mean_probabilities(likelihoods: NDArray[np.float64], odds: Vector, checkpoint: Checkpoint) -> Vector:
    """Mean of the normalised ``odds · likelihoods`` over all rows, shape (n_classes,)."""
    n_rows, n_classes = likelihoods.shape
    total: Vector = np.zeros(n_classes)
    height = max(1, _AT_ONCE // n_classes)
    for start in range(0, n_rows, height):
        total += _normalised(likelihoods[start : start + height].copy(), odds).sum(axis=0)
        checkpoint()
    return np.asarray(total / n_rows)


def _likelihoods(slopes: Vector, offsets: Vector, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The odds of the sigmoids, shape (n_rows, n_classes), scaled so that the largest of a row is 1.

    Computed in place, as there may be many.
    """
    margins = slopes * scores
    margins += offsets
    if margins.shape[1] == 1:
        margins = np.column_stack([np.zeros(len(margins)), margins])
    margins -= margins.max(axis=1, keepdims=True, initial=-np.inf)
    return exp(margins)


def _normalised(likelihoods: NDArray[np.float64], odds: Vector) -> NDArray[np.float64]:
    """``odds · likelihoods``, rows summing to 1, in the place of ``likelihoods``."""
    np.multiply(likelihoods, odds, out=likelihoods)
    np.add(likelihoods, _LEAST, out=likelihoods)
    np.divide(likelihoods, likelihoods.sum(axis=1, keepdims=True), out=likelihoods)
    return likelihoods
