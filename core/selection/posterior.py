"""Posterior of a class fraction over a grid, and projection of the classes' fractions onto the simplex."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import exp, expit, expit_of, log, log_of, logit, logit_of
from core.selection.log_evidence import LEAST, LabelCounts

Vector = NDArray[np.float64]

STEPS = (-2.7, -1.8, -0.9, 0.0, 0.9, 1.8, 2.7)
"""steps of the grid, in logits around its centre"""
_FINE = 400
_EVEN, _UNEVEN, _EVEN_ODDS = 0.3, 1.0, 0.1
"""in logits: standard deviations of the classes' fractions around their mean where the classes are about as frequent, and where they are not; and the
odds of the former before the evidence is asked"""
_LEAST, _LEAST_MEAN = 1e-300, 1e-9
_OWN = 4.0
"""variances of their sum up to which the fractions' own errors explain what it is off 1 by"""
_LOGITS, _HALVINGS = (-50.0, 50.0), 60
"""between which the logit is that moves all fractions, and how often this range is halved to find it"""


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
    """The grid with twice as many steps, for solutions that cost next to nothing."""
    return np.asarray(expit(np.interp(np.arange(2 * len(grid) - 1) / 2, np.arange(len(grid)), logit(grid)))) if len(grid) > 1 else grid


def fine_grid(grid: Vector) -> Vector:
    """Fractions at evenly spaced logits over the range of a grid: a sum over them is an integral over the logit."""
    return np.asarray(expit(np.linspace(logit_of(grid[0]), logit_of(grid[-1]), _FINE)))


def interpolate(fractions: Vector, values: Vector, at: Vector) -> Vector:
    """Values at other fractions, linear in the logit. Beyond both ends they go on as they fall there, and never rise.

    ``fractions`` and ``values`` have the shape (n,).
    """
    places, wanted = logit(fractions), logit(at)
    found = np.interp(wanted, places, values)
    if len(fractions) < 2:
        return found
    rises = np.diff(values) / np.diff(places)
    below, above = wanted < places[0], wanted > places[-1]
    found[below] += (wanted[below] - places[0]) * max(0.0, rises[0])
    found[above] += (wanted[above] - places[-1]) * min(0.0, rises[-1])
    return found


def posterior_of(fractions: Vector, evidence: Vector) -> Posterior:
    """Posterior of a fraction with the log-density ``evidence`` at fractions of evenly spaced logits, both of shape (n,)."""
    density = _density(evidence)
    mean = float((density * fractions).sum())
    return Posterior(mean, float((density * (fractions - mean) ** 2).sum()))


def log_mean(evidence: Vector, logs: Vector) -> float:
    """The logarithm of the posterior mean of a quantity with logarithms ``logs`` where the log-density is ``evidence``, both of shape (n,)."""
    highest = float(logs.max())
    return highest + log_of(max(float((_density(evidence) * exp(logs - highest)).sum()), _LEAST))


def _density(evidence: Vector) -> Vector:
    density = exp(evidence - evidence.max())
    return np.asarray(density / density.sum())


def without_common_error(posteriors: Sequence[Posterior]) -> list[Posterior]:
    """The posteriors of the fractions of all classes, all moved by the same logit so that their sum comes nearer to 1.

    One class against many others is judged alike for every class, so errors have a part in common: of twenty classes as frequent, each may seem to
    have a hundredth. It is what the errors of their own, whose variances are known, do not explain of the sum's distance from 1.
    """
    given, variances = np.array([each.mean for each in posteriors]), np.array([each.variance for each in posteriors])
    off = 1.0 - float(given.sum())
    common = max(0.0, off * off - _OWN * float(variances.sum()))
    if not common:
        return list(posteriors)
    target, means = 1.0 - off + common / off, np.clip(given, _LEAST_MEAN, 1 - _LEAST_MEAN)
    logits, (low, high) = logit(means), _LOGITS
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(logits + middle).sum() > target else (middle, high)
    moved = expit(logits + high)
    spread = variances * (moved * (1 - moved) / (means * (1 - means))) ** 2
    return [Posterior(float(mean), float(variance)) for mean, variance in zip(moved, spread, strict=True)]


def shrunk(posteriors: Sequence[Posterior]) -> list[Posterior]:
    """The posteriors of the fractions of many classes, where all classes may be about as frequent.

    Nothing that is asked of one class knows of the others, so the errors of many classes add up. Fractions that differ by no more than their errors
    explain are drawn towards their mean, in logits, the more the less is known of them; those that differ by more stay as they are. The result is the
    mean over both hypotheses.
    Source: empirical Bayes, as in Efron & Morris, Stein's estimation rule and its competitors, 1973.
    """
    means = np.clip([each.mean for each in posteriors], _LEAST_MEAN, 1 - _LEAST_MEAN)
    given = np.array([each.variance for each in posteriors])
    logits, variances = logit(means), given / (means * (1 - means)) ** 2
    off = logits - logits.mean()
    log_odds = _log_normal(off, variances + _EVEN * _EVEN) - _log_normal(off, variances + _UNEVEN * _UNEVEN) + log_of(_EVEN_ODDS)
    even, share = expit_of(log_odds), _EVEN * _EVEN / (_EVEN * _EVEN + variances)
    drawn = expit(logits - (1 - share) * off)
    kept = share * variances * (drawn * (1 - drawn)) ** 2
    found = means + even * (drawn - means)
    spread = given + even * (kept - given) + even * (1 - even) * (drawn - means) ** 2
    return [Posterior(float(mean), float(variance)) for mean, variance in zip(found, spread, strict=True)]


def _log_normal(off: Vector, variances: Vector) -> float:
    """Log-density of distances from the mean, up to a constant."""
    return float(-0.5 * (log(variances) + off * off / variances).sum())


def project_onto_simplex(posteriors: Sequence[Posterior]) -> Vector:
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
