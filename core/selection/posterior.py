"""Posterior of the fraction of one of two classes over a grid."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import Vector, exp, expit, expit_of, log_of, logit, logit_of
from core.selection.log_evidence import LEAST, LabelCounts

STEPS = np.linspace(-2.7, 2.7, 13)
"""steps of the grid, in logits around its centre"""
_FINE = 400
RANDOM_LABELS = 30
"""labels of documents drawn at random that settle what is a guess"""
_LEAST = 1e-300
_FACTORS, _HALVINGS = (-50.0, 50.0), 60
"""logarithms between which that of a factor on fractions is, and how often this range is halved to find it"""


class Posterior(NamedTuple):
    """Mean and variance of one fraction, given all evidence."""

    mean: float
    variance: float

    @property
    def is_guess(self) -> bool:
        """Whether a few random labels would say more of the fraction."""
        return self.variance > self.mean * (1 - self.mean) / RANDOM_LABELS


def grid_centre(predicted: float, counts: LabelCounts) -> float:
    """The centre of a grid: between the supervised SVM's prediction and the fraction among the labels of a random
    sample, nearer to the latter.

    Without such a sample even fractions stand in its place.
    """
    sampled = (counts.positive + 0.5) / (counts.total + 1) if counts.total else 0.5
    near, labels = logit(np.clip([predicted, sampled], LEAST, 1 - LEAST))
    return expit_of(near / 3 + labels * 2 / 3)


def grid_around(centre: float) -> Vector:
    """Fractions to try, ascending."""
    return np.asarray(expit(logit_of(centre) + STEPS))


def fine_grid(grid: Vector) -> Vector:
    """Fractions at evenly spaced logits over the range of a grid: a sum over them is an integral over the logit."""
    return np.asarray(expit(np.linspace(logit_of(grid[0]), logit_of(grid[-1]), _FINE)))


def posterior_of(fractions: Vector, evidence: Vector) -> Posterior:
    """Posterior of a fraction with the log-density ``evidence`` at fractions of evenly spaced logits, both of shape
    (n,).
    """
    density = _density(evidence)
    mean = float((density * fractions).sum())
    return Posterior(mean, float((density * (fractions - mean) ** 2).sum()))


def log_mean(evidence: Vector, logs: Vector) -> float:
    """The logarithm of the posterior mean of a quantity with logarithms ``logs`` where the log-density is ``evidence``,
    both of shape (n,).
    """
    highest = float(logs.max())
    return highest + log_of(max(float((_density(evidence) * exp(logs - highest)).sum()), _LEAST))


def bounded_fractions(fractions: Vector, bounds: NDArray[np.float64] | None) -> Vector:
    """Class fractions, shape (n_classes,), brought between ``bounds``, shape (n_classes, 2): those that are free are
    multiplied by one factor, so that all sum to 1.
    """
    if bounds is None:
        return fractions
    least, most = bounds.T
    low, high = _FACTORS
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        total = np.clip(fractions * exp(np.full(1, middle)), least, most).sum()
        low, high = (middle, high) if total < 1 else (low, middle)
    found = np.clip(fractions * exp(np.full(1, high)), least, most)
    return np.asarray(found / found.sum())


def _density(evidence: Vector) -> Vector:
    density = exp(evidence - evidence.max())
    return np.asarray(density / density.sum())
