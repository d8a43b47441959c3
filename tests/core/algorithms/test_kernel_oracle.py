"""The kernel family against oracles: Clarabel, scikit-learn, and the paper's procedures step by step."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

from core.options.kernel import CccpOptions, KernelOptions, RampOptions
from core.problem import Expansion, Result, Status
from tests.core.problems import Array, Small, small, solve
from tests.reference import kernel as reference

TIGHT = 1e-6
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.2},
    "poly": {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
}


def gram_of(data: Small, given: dict[str, Any]) -> Array:
    X = data.X[:, :-1]
    return reference.gram(
        given["kernel"], X, X, given.get("gamma", 1.0), given.get("degree", 3), given.get("coef0", 0.0)
    )


def weights_of(result: Result, n_rows: int) -> Array:
    assert isinstance(result.decision, Expansion)
    weights = np.zeros(n_rows)
    weights[result.decision.rows] = result.decision.weights
    return weights


def scores_of(result: Result, K: Array) -> Array:
    return K @ weights_of(result, len(K)) + result.decision.intercept


def labeled_only(seed: int, n: int = 40, gap: float = 0.5) -> Small:
    return small(seed, n=n, labeled=n, gap=gap)


@pytest.mark.parametrize("given", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("seed", range(4))
def test_the_hinge_svm_is_the_one_of_clarabel(seed: int, given: dict[str, Any]) -> None:
    data = labeled_only(seed)
    K = gram_of(data, given)
    result = solve("kernel_svm", data.problem, KernelOptions.parse({**given, "C": 2.0, "tolerance": TIGHT}))
    expected = reference.svm(K, data.y, np.full(40, 2.0))
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(expected.objectives[0], rel=1e-6)
    np.testing.assert_allclose(scores_of(result, K), expected.f, atol=2e-4)


@pytest.mark.parametrize("given", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("C", [0.1, 3.0, 100.0])
def test_the_hinge_svm_is_the_one_of_scikit_learn(C: float, given: dict[str, Any]) -> None:
    """The same α, b and decision values, and unseen rows too."""
    data = labeled_only(11, n=60)
    fitted = SVC(
        C=C,
        kernel=given["kernel"],
        gamma=given.get("gamma", 1.0),
        degree=given.get("degree", 3),
        coef0=given.get("coef0", 0.0),
        tol=1e-7,
    )
    fitted.fit(data.X[:, :-1], data.y)
    result = solve("kernel_svm", data.problem, KernelOptions.parse({**given, "C": C, "tolerance": 1e-7}))
    alphas = np.zeros(60)
    alphas[fitted.support_] = fitted.dual_coef_[0]
    K = gram_of(data, given)
    if given["kernel"] != "linear":  # of few features: α is not the only one
        np.testing.assert_allclose(weights_of(result, 60), alphas, atol=2e-3 * C)
    assert result.decision.intercept == pytest.approx(fitted.intercept_[0], abs=2e-3)
    np.testing.assert_allclose(scores_of(result, K), fitted.decision_function(data.X[:, :-1]), atol=3e-3)


def check_optimal(score: Array, y: Array, alpha: Array, low: Array, high: Array, within: float) -> None:
    """The conditions on y f where α is off its bounds: ≤ 1 above the lower one, ≥ 1 below the upper one."""
    margin, signed = y * score, y * alpha
    assert np.all(signed >= low - 1e-9)
    assert np.all(signed <= high + 1e-9)
    assert np.all(margin[signed > low + 1e-9] <= 1 + within)
    assert np.all(margin[signed < high - 1e-9] >= 1 - within)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
def test_the_solution_is_optimal_within_the_tolerance(tolerance: float) -> None:
    data = labeled_only(3, n=80)
    K = gram_of(data, KERNELS["rbf"])
    result = solve(
        "kernel_svm", data.problem, KernelOptions.parse({**KERNELS["rbf"], "C": 5.0, "tolerance": tolerance})
    )
    alpha = weights_of(result, 80)
    assert alpha.sum() == pytest.approx(0, abs=1e-9)
    check_optimal(scores_of(result, K), data.y, alpha, np.zeros(80), np.full(80, 5.0), tolerance + 1e-6)


@pytest.mark.parametrize("s", [-1.0, -0.2, 0.0, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_the_ramp_svm_goes_the_way_of_the_paper(seed: int, s: float) -> None:
    """The same objective (1.8) after every convex step, and the same β at the end."""
    data = labeled_only(seed, gap=0.3)
    K = gram_of(data, KERNELS["rbf"])
    expected = reference.ramp_svm(K, data.y, np.full(40, 3.0), s)
    result = solve(
        "ramp_svm", data.problem, RampOptions.parse({**KERNELS["rbf"], "C": 3.0, "s": s, "tolerance": TIGHT})
    )
    assert result.status is Status.CONVERGED
    objectives = outer(result)
    np.testing.assert_allclose(objectives[: len(expected.objectives)], expected.objectives, rtol=1e-5)
    assert result.objective == pytest.approx(expected.objectives[-1], rel=1e-5)
    score = scores_of(result, K)
    np.testing.assert_allclose(score, expected.f, atol=1e-3)
    beta = np.where(data.y * score < s, 3.0, 0.0)
    check_optimal(score, data.y, weights_of(result, 40), -beta, 3.0 - beta, 1e-5)


def outer(result: Result) -> list[float]:
    """The objective after each convex step."""
    steps: dict[int, float] = {}
    for point in result.trace:
        steps[point.iteration] = point.objective
    return list(steps.values())


@pytest.mark.parametrize("algorithm", ["ramp_svm", "cccp_tsvm"])
def test_the_objective_falls_at_every_iteration(algorithm: str) -> None:
    fell = 0
    for seed in range(8):
        data = small(seed, n=80, labeled=80 if algorithm == "ramp_svm" else 20, gap=0.15)
        options = (RampOptions if algorithm == "ramp_svm" else CccpOptions).parse(
            {**KERNELS["rbf"], "C": 4.0, "s": -0.1, "tolerance": 1e-5}
        )
        objectives = outer(solve(algorithm, data.problem, options))
        assert all(after <= before * (1 + 1e-6) for before, after in pairwise(objectives))
        fell += len(objectives) > 2
    assert fell >= 4


@pytest.mark.parametrize("seed", range(6))
def test_the_subset_start_reaches_the_objective(seed: int) -> None:
    data = labeled_only(seed, n=120, gap=0.6)
    both = [
        solve(
            "ramp_svm",
            data.problem,
            RampOptions.parse({**KERNELS["rbf"], "C": 1.0, "s": -0.5, "start": start, "subset_fraction": 0.3}),
        )
        for start in ("zero", "subset")
    ]
    assert both[1].objective == pytest.approx(both[0].objective, rel=0.01)


@pytest.mark.parametrize("given", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("s", [-0.4, 0.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_transductive_svm_goes_the_way_of_the_paper(seed: int, s: float, given: dict[str, Any]) -> None:
    data = small(seed, gap=0.4, labeled=10)
    K = gram_of(data, given)
    balance = float(np.mean(data.y))
    expected = reference.cccp_tsvm(K, data.y, np.full(10, 2.0), np.full(30, 0.5), s, balance)
    options = CccpOptions.parse({**given, "C": 2.0, "C_u": 0.5, "s": s, "tolerance": TIGHT})
    result = solve("cccp_tsvm", data.problem, options)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(expected.objectives[-1], rel=1e-4)
    np.testing.assert_allclose(result.unlabeled_scores, expected.f[10:], atol=5e-3)
    np.testing.assert_allclose(scores_of(result, K)[10:], result.unlabeled_scores, atol=1e-4)


@pytest.mark.parametrize("fraction", ["labeled", 0.2, 0.5, 0.9])
@pytest.mark.parametrize("s", [-0.3, 0.0])
def test_the_balance_holds(s: float, fraction: float | str) -> None:
    """Eqn. 1.13 to 1e-3, whatever the tolerance of the solves."""
    data = small(5, n=100, labeled=12, gap=0.4)
    result = solve(
        "cccp_tsvm",
        data.problem,
        CccpOptions.parse({**KERNELS["rbf"], "C": 3.0, "s": s, "positive_fraction": fraction}),
    )
    wanted = float(np.mean(data.y)) if isinstance(fraction, str) else 2 * fraction - 1
    assert np.mean(result.unlabeled_scores) == pytest.approx(wanted, abs=1e-3)


def test_labeled_and_unlabeled_weigh_the_same_by_default() -> None:
    data = small(6, n=60, labeled=12, gap=0.5)
    default, told = (
        solve("cccp_tsvm", data.problem, CccpOptions.parse({**KERNELS["rbf"], "C": 3.0, **given}))
        for given in ({}, {"C_u": 3.0 * 12 / 48})
    )
    np.testing.assert_array_equal(default.unlabeled_scores, told.unlabeled_scores)


def test_without_weight_of_the_unlabeled_it_is_the_svm() -> None:
    data = small(7, n=60, labeled=20, gap=0.5)
    given = {**KERNELS["rbf"], "C": 3.0, "tolerance": TIGHT}
    alone = solve("kernel_svm", data.problem, KernelOptions.parse(given))
    result = solve("cccp_tsvm", data.problem, CccpOptions.parse({**given, "C_u": 0.0}))
    np.testing.assert_allclose(result.unlabeled_scores, alone.unlabeled_scores, atol=1e-4)
    assert result.objective == pytest.approx(alone.objective, rel=1e-6)


@pytest.mark.parametrize("algorithm", ["kernel_svm", "ramp_svm", "cccp_tsvm"])
@pytest.mark.parametrize("cache_bytes", [0, 2000, 10_000])
def test_a_tiny_cache_gives_the_same_solution(algorithm: str, cache_bytes: int) -> None:
    data = small(9, n=150, labeled=60, gap=0.3)
    options = {"kernel_svm": KernelOptions, "ramp_svm": RampOptions, "cccp_tsvm": CccpOptions}[algorithm]
    ample, tiny = (
        solve(algorithm, data.problem, options.parse({**KERNELS["rbf"], "C": 3.0, "tolerance": TIGHT, **given}))
        for given in ({}, {"cache_bytes": cache_bytes})
    )
    assert tiny.objective == pytest.approx(ample.objective, rel=1e-6)
    np.testing.assert_allclose(tiny.unlabeled_scores, ample.unlabeled_scores, atol=1e-3)
