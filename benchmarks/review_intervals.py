"""Whether intervals by strata would be tighter than those of audits: a section of ``docs/review.md``.

An audit is a simple random sample, and a model says of every document how sure it is. So a sample can be cut into
strata by that, whose sizes are known. Two intervals do so: the exact ones of the strata added up, each at a part of the
level (Bonferroni); and Wilson's, with one quantile for all strata, so that together they have the level (Yan & Su,
Stratified Wilson and Newcombe confidence intervals, 2010).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm

LEVEL = 0.05
STRATA = 3
N = 100
_RUNS = 4_000
Array = NDArray[np.float64]
Bounds = tuple[Array, Array]

TITLE = f"""
## Intervals of an audit by strata

An audit of {N} labels is drawn {_RUNS:,} times. Its interval should have the error in 95 of 100. Beside it are
intervals of {STRATA} strata of equal size, by how sure the model is: exact ones, and approximate ones by Wilson.
Widths are those of the interval of the whole sample times the figure.
"""
COLUMNS = [
    "set",
    "error",
    "whole: has it",
    "width",
    "strata, exact: has it",
    "width",
    "strata, Wilson: has it",
    "width",
    "least possible",
]


def interval_row(name: str, sure: Array, right: NDArray[np.bool_]) -> list[str]:
    """The row of a model that is so sure of each document, and right or not, shape (n,) each."""
    wrong, chance = ~right, np.random.default_rng(3)
    stratum = np.argsort(np.argsort(sure, kind="stable"), kind="stable") * STRATA // len(sure)
    shares = np.bincount(stratum) / len(sure)
    within = np.array([wrong[stratum == k].var() for k in range(STRATA)])
    drawn = np.array([chance.choice(len(sure), N, replace=False) for _ in range(_RUNS)])
    counts = np.array([np.bincount(stratum[each], minlength=STRATA) for each in drawn])
    errors = np.array([np.bincount(stratum[each], wrong[each], STRATA) for each in drawn])
    whole = exact(errors.sum(axis=1), np.full(_RUNS, N), LEVEL)
    by_strata = (
        tuple((bound * shares).sum(axis=1) for bound in exact(errors, counts, LEVEL / STRATA)),
        wilson(errors, counts, shares),
    )
    row = [name, f"{wrong.mean():.3f}", _has(whole, wrong.mean()), f"{_width(whole):.3f}"]
    for bounds in by_strata:
        row += [_has(bounds, wrong.mean()), f"{_width(bounds) / _width(whole):.2f}"]
    return [*row, f"{np.sqrt(shares @ within / wrong.var()):.2f}"]


def exact(errors: Array, n: NDArray[np.int64], level: float) -> Bounds:
    """Clopper and Pearson's intervals, elementwise."""
    low = np.where(errors == 0, 0.0, beta.ppf(level / 2, errors, n - errors + 1))
    return low, np.where(errors == n, 1.0, beta.ppf(1 - level / 2, errors + 1, n - errors))


def wilson(errors: Array, n: NDArray[np.int64], shares: Array) -> Bounds:
    """Intervals of strata by Wilson, shape (n_runs, n_strata), added up; a stratum of which nothing was drawn counts as
    one without errors.
    """
    counts = np.maximum(n, 1)
    error = errors / counts
    variance = np.maximum(error * (1 - error), 1 / (4 * counts)) / counts
    quantile = (
        norm.ppf(1 - LEVEL / 2) * np.sqrt((shares**2 * variance).sum(axis=1)) / (shares * np.sqrt(variance)).sum(axis=1)
    )
    square = quantile[:, None] ** 2
    middle = (error + square / (2 * counts)) / (1 + square / counts)
    half = quantile[:, None] * np.sqrt(error * (1 - error) / counts + square / (4 * counts**2)) / (1 + square / counts)
    return ((middle - half) * shares).sum(axis=1), ((middle + half) * shares).sum(axis=1)


def _width(bounds: tuple[Array, ...]) -> float:
    return float(np.mean(bounds[1] - bounds[0]))


def _has(bounds: tuple[Array, ...], error: float) -> str:
    return f"{np.mean((bounds[0] <= error) & (error <= bounds[1])):.3f}"
