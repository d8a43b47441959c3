"""Posterior of a class fraction over a grid, and projection of the classes' fractions onto the simplex."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import exp, expit, expit_of, log_of, logit, logit_of
from core.selection.log_evidence import LEAST, LabelCounts

Vector = NDArray[np.float64]

STEPS = (-2.7, -1.8, -0.9, 0.0, 0.9, 1.8, 2.7)
"""steps of the grid, in logits around its centre"""
_FINE = 400
_LEAST = 1e-300


class Posterior(NamedTuple):
    """Mean and variance of one fraction, given all evidence."""

    mean: float
    variance: float


def grid_centre(predicted: float, counts: LabelCounts, n_classes: int) -> float:
    """The centre of a grid: between the supervised SVM's prediction and the fraction among the labels of a random sample, nearer to the latter.

    Without such a sample even fractions stand in its place.
    """
    sampled = (counts.positive + 0.5) / (counts.total + 1) if counts.total else 1 / n_classes
    near, labels = logit(np.clip([predicted, sampled], LEAST, 1 - LEAST))
    return expit_of(near / 3 + labels * 2 / 3)


def grid_around(centre: float) -> Vector:
    """Fractions to try, ascending."""
    return np.asarray(expit(logit_of(centre) + np.array(STEPS)))


def refine_grid(grid: Vector) -> Vector:
    """The grid with four times as many steps, for solutions that cost next to nothing."""
    return np.asarray(expit(np.interp(np.arange(4 * len(grid) - 3) / 4, np.arange(len(grid)), logit(grid)))) if len(grid) > 1 else grid


def posterior_of(fractions: Vector, evidence: Vector) -> Posterior:
    """Posterior of a fraction whose logit has the log-density ``evidence`` at ``fractions``, both of shape (n,), linear in between."""
    values, density = _density(fractions, evidence)
    mean = float((density * values).sum())
    return Posterior(mean, float((density * (values - mean) ** 2).sum()))


def log_mean(fractions: Vector, evidence: Vector, logs: Vector) -> float:
    """The logarithm of the posterior mean of a quantity whose logarithms at ``fractions`` are ``logs``, linear in between; all of shape (n,)."""
    values, density = _density(fractions, evidence)
    between = np.interp(logit(values), logit(fractions), logs)
    highest = float(between.max())
    return highest + log_of(max(float((density * exp(between - highest)).sum()), _LEAST))


def _density(fractions: Vector, evidence: Vector) -> tuple[Vector, Vector]:
    """Fractions at evenly spaced logits, and their probabilities."""
    logits = np.linspace(logit_of(fractions[0]), logit_of(fractions[-1]), _FINE)
    density = np.interp(logits, logit(fractions), evidence)
    density = exp(density - density.max())
    return expit(logits), np.asarray(density / density.sum())


def project_onto_simplex(posteriors: list[Posterior]) -> Vector:
    """Fractions of the classes of one-vs-rest, shape (n_classes,), that sum to 1: the means, moved the more the larger their variance.

    Least squares under the sum, weighed by the inverse variances. No class falls below a tenth of its mean.
    """
    means = np.array([posterior.mean for posterior in posteriors])
    variances = np.array([posterior.variance for posterior in posteriors]) + 1e-12
    least = 0.1 * means
    free = np.ones(len(means), bool)
    fractions = means.copy()
    for _ in posteriors:
        missing = 1.0 - fractions.sum()
        fractions[free] += missing * variances[free] / variances[free].sum()
        low = free & (fractions < least)
        if not low.any():
            break
        fractions[low], free[low] = least[low], False
        if not free.any():
            break
    return np.asarray(fractions / fractions.sum())
