"""The likely gain of more labels: the learning curve of the versions of a model, continued.

The error after n labels is ``e (n / now)^-b``: a power law (Cortes, Jackel, Solla, Vapnik & Denker, Learning curves:
asymptotic values and rate of convergence, 1993). The error now and the rate b have a posterior on a grid, from binomial
counts. Before any count, rates are those that the curves of the benchmarks have. All versions are measured by the same
sample, so the older ones together weigh as much as one of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import exp, log, log_of

_MEAN_RATE, _RATE_DEVIATION, _HIGHEST_RATE = 0.35, 0.25, 1.2
_RATES, _ERRORS = 25, 400
_SCATTER = 0.2
"""standard deviation of the logarithm of the error of a version about the power law: no two trainings choose alike"""
_NODES = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
_NODE_WEIGHTS = np.array([0.0545, 0.2442, 0.4026, 0.2442, 0.0545])
"""the standard normal distribution at five nodes"""
_LEVEL = 0.8
_MOST_ERROR = 0.999


class Point(NamedTuple):
    """A version, measured by a random sample that it was not told."""

    learned: int
    """number of labels that it learned from"""
    labels: int
    """number of labels of the sample"""
    errors: int
    """number of these that it gets wrong"""


class Forecast(NamedTuple):
    """The error after more labels; of 100 such forecasts 80 should have the error between ``low`` and ``high``."""

    expected: float
    low: float
    high: float


def forecast(points: Sequence[Point], more: int) -> Forecast | None:
    """The error after ``more`` labels than the version that learned from the most has.

    None if no version is measured and has learned from labels.
    """
    measured = [point for point in points if point.labels and point.learned]
    if not measured:
        return None
    newest = max(measured, key=lambda point: point.learned)
    rates = np.linspace(0.0, _HIGHEST_RATE, _RATES)
    errors = (np.arange(_ERRORS) + 0.5) / _ERRORS
    weights = _posterior(measured, newest, rates, errors)
    factors = exp(-rates * log_of((newest.learned + more) / newest.learned))
    later = np.outer(factors, errors)
    scattered = np.minimum(np.multiply.outer(exp(_SCATTER * _NODES), later), 1.0)
    low, high = _quantiles(
        scattered.ravel(), np.multiply.outer(_NODE_WEIGHTS, weights).ravel(), ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)
    )
    return Forecast(float((weights * later).sum()), low, high)


def _posterior(
    measured: Sequence[Point], newest: Point, rates: NDArray[np.float64], errors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Probability of each rate with each error now, shape (n_rates, n_errors)."""
    logs = np.repeat((-0.5 * ((rates - _MEAN_RATE) / _RATE_DEVIATION) ** 2)[:, None], len(errors), axis=1)
    for point in measured:
        share = 1.0 if point is newest else 1.0 / (len(measured) - 1)
        then = np.outer(exp(rates * log_of(newest.learned / point.learned)), errors)
        then = np.minimum(then, _MOST_ERROR)
        logs += share * (point.errors * log(then) + (point.labels - point.errors) * log(1 - then))
    found = exp(logs - logs.max())
    return np.asarray(found / found.sum())


def _quantiles(
    values: NDArray[np.float64], weights: NDArray[np.float64], shares: tuple[float, float]
) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    places = np.minimum(np.searchsorted(summed, shares), len(values) - 1)
    low, high = values[order][places].tolist()
    return low, high
