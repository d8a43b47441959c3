"""∇TSVM: its balance holds exactly, its gradient is zero by finite differences, and no step of SciPy lowers it."""

import numpy as np
import pytest
from scipy.optimize import minimize

from core.algorithms.low_density import weight_stages
from core.options.linear import SvmOptions
from core.options.subspace import GradientTsvmOptions
from core.problem import Expansion, Status
from tests.core.problems import Array, Small, small, solve, weights_of

FRACTION = 0.4


def options_of(**given: object) -> GradientTsvmOptions:
    return GradientTsvmOptions.parse({"lambda": 0.01, "positive_fraction": FRACTION, "tolerance": 1e-14, **given})


def objective(dense: Array, y: Array, ridge: float, lambda_u: float, w: Array) -> float:
    """Of w alone: the balance determines the bias."""
    n = len(y)
    o = (dense - dense[n:].mean(axis=0)) @ w + 2 * FRACTION - 1
    hinges, bumps = np.maximum(0, 1 - y * o[:n]) ** 2, np.exp(-3 * o[n:] ** 2)
    return float(0.5 * (ridge * w @ w + hinges.mean() + lambda_u * bumps.mean()))


def by_stages(dense: Array, y: Array, ridge: float, lambda_u: float) -> Array:
    """Gradients by finite differences, steps by SciPy."""
    w = np.zeros(dense.shape[1])
    for weight in weight_stages(lambda_u):

        def value(v: Array, weight: float = weight) -> float:
            return objective(dense, y, ridge, weight, v)

        w = np.asarray(minimize(value, w, method="BFGS").x)
    return w


@pytest.mark.parametrize("seed", range(6))
def test_it_ends_at_a_balanced_minimum(seed: int) -> None:
    data = small(seed, n=60, labeled=10, gap=0.4)
    dense = data.X[:, :-1]
    result = solve("gradient_tsvm", data.problem, options_of())
    w = weights_of(result)
    assert result.status is Status.CONVERGED
    assert result.unlabeled_scores.mean() == pytest.approx(2 * FRACTION - 1, abs=1e-9)
    np.testing.assert_allclose(result.unlabeled_scores, data.X[10:] @ w, atol=1e-9)
    assert result.objective == pytest.approx(objective(dense, data.y, 0.01, 1.0, w[:-1]), rel=1e-9)

    def value(v: Array) -> float:
        return objective(dense, data.y, 0.01, 1.0, v)

    found = minimize(value, w[:-1], method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(found.x, w[:-1], atol=1e-4)


def test_it_ends_no_higher_than_plain_descent_in_the_mean() -> None:
    ours, theirs = [], []
    for seed in range(10):
        data = small(seed, n=60, labeled=10, gap=0.4)
        ours.append(solve("gradient_tsvm", data.problem, options_of()).objective)
        w = by_stages(data.X[:, :-1], data.y, 0.01, 1.0)
        theirs.append(objective(data.X[:, :-1], data.y, 0.01, 1.0, w))
    assert np.mean(ours) <= np.mean(theirs) * 1.01


def test_the_linear_kernel_by_coordinates_is_the_linear_method() -> None:
    """The polynomial kernel of degree 1 is x · z."""
    data = small(3, n=60, labeled=10, gap=0.5)
    linear = solve("gradient_tsvm", data.problem, options_of())
    kernel = solve("gradient_tsvm", data.problem, options_of(kernel="poly", degree=1, gamma=1.0))
    assert isinstance(kernel.decision, Expansion)
    np.testing.assert_allclose(kernel.unlabeled_scores, linear.unlabeled_scores, atol=1e-3)
    assert kernel.objective == pytest.approx(linear.objective, rel=1e-5)


def test_without_unlabeled_rows_it_is_the_svm() -> None:
    data: Small = small(0, n=20, labeled=20)
    found = solve("gradient_tsvm", data.problem, options_of())
    expected = solve("svm", data.problem, SvmOptions(lambda_=0.01, tolerance=1e-14))
    np.testing.assert_allclose(weights_of(found), weights_of(expected), atol=1e-9)


def test_stages_grow_hundredfold_to_the_weight() -> None:
    stages = weight_stages(0.7)
    assert len(stages) == 11
    assert stages[-1] == 0.7
    assert stages[0] == pytest.approx(0.007)
