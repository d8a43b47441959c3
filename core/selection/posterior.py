"""Posterior of a class fraction over a grid, and projection of the classes' fractions onto the simplex."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import exp, expit, expit_of, logit, logit_of
from core.selection.log_evidence import LEAST

Vector = NDArray[np.float64]

STEPS = (-2.7, -1.8, -0.9, 0.0, 0.9, 1.8, 2.7)
"""steps of the grid, in logits around its centre"""
_FINE = 400


class Posterior(NamedTuple):
    """Mean and variance of one fraction, given all evidence."""

    mean: float
    variance: float


def grid_centre(predicted: float, count: int, total: int) -> float:
    """The centre of a grid: between the supervised SVM's prediction and the fraction among the labels, nearer to the latter."""
    ends = np.clip([predicted, (count + 0.5) / (total + 1)], LEAST, 1 - LEAST)
    near, labels = logit(ends)
    return expit_of(near / 3 + labels * 2 / 3)


def grid_around(centre: float) -> Vector:
    """Fractions to try, ascending."""
    return np.asarray(expit(logit_of(centre) + np.array(STEPS)))


def refine_grid(grid: Vector) -> Vector:
    """The grid with four times as many steps, for solutions that cost next to nothing."""
    return np.asarray(expit(np.interp(np.arange(4 * len(grid) - 3) / 4, np.arange(len(grid)), logit(grid)))) if len(grid) > 1 else grid


def posterior_of(fractions: Vector, evidence: Vector) -> Posterior:
    """Posterior of a fraction whose logit has the log-density ``evidence`` at ``fractions``, both of shape (n,), linear in between."""
    logits = np.linspace(logit_of(fractions[0]), logit_of(fractions[-1]), _FINE)
    density = np.interp(logits, logit(fractions), evidence)
    density = exp(density - density.max())
    density /= density.sum()
    values = expit(logits)
    mean = float((density * values).sum())
    return Posterior(mean, float((density * (values - mean) ** 2).sum()))


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
