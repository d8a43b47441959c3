"""The references themselves: against finite differences, SciPy, brute force, optimality conditions and identities, so
that agreement with them means something.
"""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from tests.core.problems import Array, normal, small
from tests.reference.annealing import balanced, divergence, entropy, gains_of
from tests.reference.kernel import cccp_tsvm, gram, hinge, ramp_loss, ramp_svm, solve_dual, svm, with_mean
from tests.reference.mfn import gradient, minimise, objective, sorted_line_search
from tests.reference.transductive import J_of, first_labels, stages, switch, tsvm


@pytest.mark.parametrize("seed", range(3))
def test_the_minimum_is_one_that_scipy_does_not_pass(seed: int) -> None:
    X = small(seed).X
    rng = np.random.default_rng(seed)
    positive, negative = rng.random(len(X)), rng.random(len(X))
    w = minimise(X, positive, negative, 0.1)
    assert np.abs(gradient(X, positive, negative, 0.1, w)).max() < 1e-12

    def value(v: Array) -> float:
        return objective(X, positive, negative, 0.1, v)

    found = minimize(value, np.zeros(len(w)), method="BFGS", options={"gtol": 1e-7})
    assert objective(X, positive, negative, 0.1, w) <= found.fun + 1e-9
    np.testing.assert_allclose(w, found.x, atol=1e-4)


def test_the_gradient_is_the_slope_of_the_objective() -> None:
    X = small(1).X
    rng = np.random.default_rng(1)
    positive, negative, w, s = rng.random(len(X)), rng.random(len(X)), normal(rng, X.shape[1]), normal(rng, X.shape[1])
    slope = (
        objective(X, positive, negative, 0.1, w + 1e-6 * s) - objective(X, positive, negative, 0.1, w - 1e-6 * s)
    ) / 2e-6
    assert gradient(X, positive, negative, 0.1, w) @ s == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_sorted_line_search_finds_the_least_value(seed: int) -> None:
    X = small(seed).X
    rng = np.random.default_rng(seed)
    Y, C, w = np.where(rng.random(len(X)) < 0.5, 1.0, -1.0), rng.random(len(X)), normal(rng, X.shape[1])
    s = -gradient(X, C * (Y > 0), C * (Y < 0), 0.1, w)
    step = sorted_line_search(w, w + s, X @ w, X @ (w + s), Y, C, 0.1)
    found = minimize_scalar(
        lambda t: objective(X, C * (Y > 0), C * (Y < 0), 0.1, w + t * s), bracket=(0, step), tol=1e-12
    )
    assert step == pytest.approx(found.x, rel=1e-5)


def test_switching_leaves_the_best_labels_of_their_count_at_fixed_scores() -> None:
    """All pairs switched, no other labels with as many positives cost less: tried one by one."""
    scores = np.random.default_rng(5).standard_normal(7)
    labels = first_labels(np.random.default_rng(6).standard_normal(7), 0.4)
    while switch(labels, scores, 1):
        pass
    cost = {
        tried: float(sum(max(0.0, 1.0 - y * o) ** 2 for y, o in zip(tried, scores, strict=True)))
        for tried in product((-1.0, 1.0), repeat=7)
        if sum(tried) == sum(labels)
    }
    assert cost[tuple(labels)] == pytest.approx(min(cost.values()))


def test_beliefs_minimise_what_annealing_says_they_do() -> None:
    gains, weights = gains_of(np.random.default_rng(2).standard_normal(5), 1.0), np.full(5, 0.2)
    p = balanced(gains, weights, 0.4, 4.0)
    assert weights @ p == pytest.approx(0.4, abs=1e-12)

    def energy(q: np.ndarray) -> float:
        return float(q @ gains / 5 - 4.0 * entropy(q))

    rng = np.random.default_rng(3)
    for _ in range(50):
        move = rng.standard_normal(5) * 1e-3
        assert energy(p + move - move.mean()) > energy(p)


def test_entropy_and_divergence_of_known_beliefs() -> None:
    assert entropy(np.array([0.5, 1.0])) == pytest.approx(np.log(2) / 2)
    assert divergence(np.array([1.0, 0.5]), np.array([0.5, 0.5])) == pytest.approx(np.log(2) / 2)


def test_stages_double_and_end_at_the_weight() -> None:
    assert stages(1e-6) == [1e-6]
    assert stages(5e-5) == [1e-5, 2e-5, 4e-5, 5e-5]


def test_tsvm_labels_separated_clusters() -> None:
    data = small(0, gap=4.0)
    solution = tsvm(data.X, data.y, 1e-2, 1.0, float((data.truth[len(data.y) :] > 0).mean()), None)
    np.testing.assert_array_equal(solution.labels, data.truth[len(data.y) :])
    assert J_of(data.X, data.y, 1e-2, 1.0, solution.w) == solution.J


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
