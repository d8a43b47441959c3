"""From evidence over a grid of fractions to the fractions of the classes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from core.selection.log_evidence import LEAST

Vector = NDArray[np.float64]

STEPS = (-2.7, -1.8, -0.9, 0.0, 0.9, 1.8, 2.7)
"""of the grid, in logits around its centre"""
_FINE = 400


class Posterior(NamedTuple):
    """What is known of one fraction."""

    mean: float
    variance: float


def grid_centre(predicted: float, count: int, total: int) -> float:
    """Where to look for a fraction: between what the supervised model predicts and what the labels say, nearer to these."""
    ends = np.clip([predicted, (count + 0.5) / (total + 1)], LEAST, 1 - LEAST)
    return float(expit(logit(ends) @ [1 / 3, 2 / 3]))


def grid_around(centre: float) -> Vector:
    """Fractions to try, ascending."""
    return np.asarray(expit(logit(centre) + np.array(STEPS)))


def refine_grid(grid: Vector) -> Vector:
    """Four times as many steps between the same ends, for solutions that cost next to nothing."""
    return np.asarray(expit(np.interp(np.arange(4 * len(grid) - 3) / 4, np.arange(len(grid)), logit(grid)))) if len(grid) > 1 else grid


def posterior_of(fractions: Vector, evidence: Vector) -> Posterior:
    """Mean and variance of a fraction with log-density ``evidence`` by its logit at ``fractions``, between them by straight lines."""
    logits = np.linspace(logit(fractions[0]), logit(fractions[-1]), _FINE)
    density = np.interp(logits, logit(fractions), evidence)
    density = np.exp(density - density.max())
    density /= density.sum()
    values = expit(logits)
    mean = float(density @ values)
    return Posterior(mean, float(density @ (values - mean) ** 2))


def project_onto_simplex(posteriors: list[Posterior]) -> Vector:
    """Fractions of the classes of one-vs-rest, each judged alone, that sum to 1: those that are known worst are moved most.

    Least squares under the sum, weighed by the inverse variances; no class falls below a tenth of its mean.
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
