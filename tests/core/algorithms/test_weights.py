"""A row given twice is the same as its cost doubled."""

from typing import Any

import numpy as np
import pytest

from core.engine.solver import solve
from core.options.linear import AnnealingOptions, SvmOptions, TsvmOptions
from core.problem import Problem
from tests.core.problems import Array, Small, rows_of, small, weights_of


def repeated(data: Small, times: Array) -> Problem:
    order = np.repeat(np.arange(data.rows.n_rows), times.astype(int))
    n_labeled = int(times[: len(data.y)].sum())
    return Problem.of(rows_of(data.X[order, :-1]), np.repeat(data.y, times[: len(data.y)].astype(int))[:n_labeled])


def costly(data: Small, times: Array) -> Problem:
    return Problem.of(data.rows, data.y, 3.7 * times)


def times_of(seed: int, data: Small) -> Array:
    return np.random.default_rng(seed).integers(1, 4, data.rows.n_rows).astype(float)


@pytest.mark.parametrize("seed", range(4))
def test_svm(seed: int) -> None:
    data = small(seed, n=30, labeled=20)
    times = times_of(seed, data)
    one, other, even = (
        solve("svm", problem, SvmOptions(tolerance=1e-17))
        for problem in (repeated(data, times), costly(data, times), data.problem)
    )
    np.testing.assert_allclose(weights_of(one), weights_of(other), rtol=1e-7, atol=1e-9)
    assert one.objective == pytest.approx(other.objective, rel=1e-10)
    assert np.abs(weights_of(one) - weights_of(even)).max() > 1e-3, "weights matter here"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("algorithm", "options", "gap", "rtol", "atol"),
    [
        ("da", AnnealingOptions(lambda_=1e-2, positive_fraction=0.4, tolerance=1e-12), 0.4, 1e-5, 1e-3),
        ("tsvm", TsvmOptions(lambda_=1e-2, positive_fraction=0.4, tolerance=1e-14), 0.25, 1e-8, 1e-5),
    ],
    ids=["da", "tsvm"],
)
def test_unlabeled_rows(algorithm: str, options: Any, gap: float, rtol: float, atol: float, seed: int) -> None:
    """Unlabeled rows have one weight for ``tsvm``: its constraint counts rows, so that two copies of one may get
    different labels.
    """
    data = small(seed, n=48, labeled=8, gap=gap)
    times = times_of(seed, data)
    if algorithm == "tsvm":
        times = np.where(np.arange(48) < 8, times, 2.0)
    one, other, even = (
        solve(algorithm, problem, options) for problem in (repeated(data, times), costly(data, times), data.problem)
    )
    assert one.objective == pytest.approx(other.objective, rel=rtol)
    np.testing.assert_allclose(weights_of(one), weights_of(other), atol=atol)
    assert np.abs(weights_of(one) - weights_of(even)).max() > 1e-2, "weights matter here"


def test_the_labeled_fraction_is_by_cost() -> None:
    data = small(0)
    costs = np.ones(40)
    costs[:8] = np.where(data.y > 0, 3.0, 1.0)
    n_positive = int((data.y > 0).sum())
    assert Problem.of(data.rows, data.y, costs).labeled_fraction() == pytest.approx(
        3 * n_positive / (3 * n_positive + 8 - n_positive)
    )
