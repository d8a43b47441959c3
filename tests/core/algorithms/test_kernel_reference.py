"""The kernel family's reference itself: against SciPy, optimality conditions and identities, so that agreement with it
means something.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.core.problems import Array, small
from tests.reference.kernel import cccp_tsvm, gram, hinge, ramp_loss, ramp_svm, solve_dual, svm, with_mean


def random_dual(seed: int, n: int = 12) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    zeta = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    beta = np.where(rng.random(n) < 0.3, 0.7, 0.0)
    C = rng.uniform(0.7, 2.0, n)
    return gram("rbf", X, X, 0.4), zeta, np.where(zeta > 0, -beta, beta - C), np.where(zeta > 0, C - beta, beta)


@pytest.mark.parametrize("seed", range(5))
def test_the_dual_is_one_that_scipy_does_not_pass(seed: int) -> None:
    K, zeta, lower, upper = random_dual(seed)
    dual = solve_dual(K, zeta, lower, upper)
    assert abs(dual.alpha.sum()) < 1e-7
    assert np.all(dual.alpha >= lower)
    assert np.all(dual.alpha <= upper)

    def value(a: Array) -> float:
        return float(0.5 * a @ K @ a - a @ zeta)

    def slope(a: Array) -> Array:
        return K @ a - zeta

    found = minimize(
        value,
        np.zeros(len(zeta)),
        jac=slope,
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": np.sum, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.success
    assert dual.objective == pytest.approx(-found.fun, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_b_is_what_makes_the_optimality_conditions_hold(seed: int) -> None:
    K, zeta, lower, upper = random_dual(seed)
    dual = solve_dual(K, zeta, lower, upper)
    f = K @ dual.alpha + dual.b
    assert np.all(f[dual.alpha > lower + 1e-5] <= zeta[dual.alpha > lower + 1e-5] + 1e-5)
    assert np.all(f[dual.alpha < upper - 1e-5] >= zeta[dual.alpha < upper - 1e-5] - 1e-5)


def test_the_dual_of_the_svm_is_its_primal() -> None:
    data = small(0, labeled=40)
    K = gram("rbf", data.X[:, :-1], data.X[:, :-1], 0.3)
    found = svm(K, data.y, np.full(40, 2.0))
    assert found.objectives[0] == pytest.approx(found.alpha @ data.y - 0.5 * found.alpha @ K @ found.alpha, rel=1e-6)


def test_losses_of_the_paper() -> None:
    z = np.array([-2.0, -0.3, 0.0, 0.5, 1.0, 3.0])
    np.testing.assert_allclose(hinge(z), [3.0, 1.3, 1.0, 0.5, 0.0, 0.0])
    np.testing.assert_allclose(ramp_loss(z, -0.5), [1.5, 1.3, 1.0, 0.5, 0.0, 0.0])
    # Eqn. 1.11 is the symmetric ramp min(1 + s, max(0, 1 − |t|)), Figure 1.6, up to a constant
    symmetric = ramp_loss(z, -0.5) + ramp_loss(-z, -0.5) - np.minimum(1 - 0.5, np.maximum(0, 1 - np.abs(z)))
    np.testing.assert_allclose(symmetric, symmetric[0])


@pytest.mark.parametrize("s", [-1.0, -0.2, 0.0])
def test_the_ramp_objective_falls(s: float) -> None:
    steps = 0
    for seed in range(4):
        data = small(seed, labeled=40, gap=0.3)
        found = ramp_svm(gram("rbf", data.X[:, :-1], data.X[:, :-1], 0.2), data.y, np.full(40, 3.0), s)
        assert all(after <= before + 1e-6 for before, after in pairwise(found.objectives))
        steps += len(found.objectives) > 1
    assert steps


@pytest.mark.parametrize("s", [-0.4, 0.0])
def test_the_transductive_objective_falls_and_the_balance_holds(s: float) -> None:
    steps = 0
    for seed in range(4):
        data = small(seed, gap=0.4)
        K = gram("rbf", data.X[:, :-1], data.X[:, :-1], 0.2)
        found = cccp_tsvm(K, data.y, np.full(8, 2.0), np.full(32, 0.5), s, 0.1)
        assert all(after <= before + 1e-6 for before, after in pairwise(found.objectives))
        assert np.mean(found.f[8:]) == pytest.approx(0.1, abs=1e-6)
        steps += len(found.objectives) > 2
    assert steps


def test_the_mean_row_is_that_of_the_mean_in_feature_space() -> None:
    X = np.random.default_rng(0).standard_normal((7, 3))
    weights = np.array([0.5, 0.3, 0.2])
    rows = np.vstack([weights @ X[4:], X])
    np.testing.assert_allclose(with_mean(gram("linear", X, X), 4, weights), gram("linear", rows, rows), atol=1e-12)
