"""The Laplacian methods against dense matrices, linear and in the space of a kernel."""

from typing import Any

import numpy as np
import pytest

from core.options.subspace import LaplacianOptions
from core.problem import Expansion, Problem, Result, Status
from core.train import TrainingTask, train
from tests.core.problems import Array, arcs, rows_of, small, solve, weights_of
from tests.reference import laplacian as reference

SOLUTIONS = {"laplacian_svm": reference.svm, "laplacian_rls": reference.least_squares}
every = pytest.mark.parametrize("name", SOLUTIONS)


def roughness(dense: Array, options: LaplacianOptions) -> Array:
    L = np.linalg.matrix_power(reference.laplacian(dense, options.neighbours), options.power)
    return np.asarray(options.lambda_graph * L / len(dense))


def options_of(**given: Any) -> LaplacianOptions:
    return LaplacianOptions.parse({"lambda": 0.01, "lambda_graph": 0.5, "neighbours": 4, "tolerance": 1e-14, **given})


def value_of(name: str, X: Array, y: Array, ridge: float, rough: Array, w: Array) -> float:
    o = X @ w
    errors = y - o[: len(y)] if name == "laplacian_rls" else np.maximum(0, 1 - y * o[: len(y)])
    return float(0.5 * (ridge * w @ w + errors @ errors / len(y) + o @ rough @ o))


@every
@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_linear_is_the_solution_by_dense_matrices(name: str, power: int, seed: int) -> None:
    data, options = small(seed, n=50, labeled=12, gap=0.4), options_of(power=power)
    rough = roughness(data.X[:, :-1], options)
    expected = SOLUTIONS[name](data.X, data.y, options.lambda_, rough)
    result = solve(name, data.problem, options)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(weights_of(result), expected, atol=1e-6)
    np.testing.assert_allclose(result.unlabeled_scores, data.X[12:] @ expected, atol=1e-6)
    assert result.objective == pytest.approx(value_of(name, data.X, data.y, options.lambda_, rough, expected), rel=1e-9)
    without = solve(name, data.problem, options.model_copy(update={"lambda_graph": 1e-9}))
    assert np.abs(weights_of(without) - expected).max() > 1e-2, "the graph matters here"


def scores_of(result: Result, dense: Array, gamma: float) -> Array:
    decision = result.decision
    assert isinstance(decision, Expansion)
    distances = ((dense[:, None] - dense[None, decision.rows]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-gamma * distances) @ decision.weights + decision.intercept)


@every
@pytest.mark.parametrize("seed", range(3))
def test_in_the_space_of_a_kernel_it_is_the_solution_over_a_root_of_the_kernel_matrix(name: str, seed: int) -> None:
    data, options = small(seed, n=50, labeled=12, gap=0.4), options_of(kernel="rbf", gamma=0.3)
    dense = data.X[:, :-1]
    K = np.exp(-0.3 * ((dense[:, None] - dense[None]) ** 2).sum(axis=2))
    values, vectors = np.linalg.eigh(K)
    Z = np.column_stack([vectors * np.sqrt(np.maximum(values, 0)), np.ones(len(K))])
    rough = roughness(dense, options)
    expected = Z @ SOLUTIONS[name](Z, data.y, options.lambda_, rough)
    result = solve(name, data.problem, options)
    np.testing.assert_allclose(scores_of(result, dense, 0.3), expected, atol=2e-4)
    np.testing.assert_allclose(result.unlabeled_scores, expected[12:], atol=2e-4)


@every
def test_neighbours_tell_classes_apart_that_labels_do_not(name: str) -> None:
    """Two arcs, a label on each: the score of most rows is right only along the graph."""
    dense, truth = arcs()
    class_indices = np.full(120, -1, np.int32)
    class_indices[[5, 65]] = 0, 1
    errors = {}
    for weight in (1e-9, 1.0):
        options = {"kernel": "rbf", "gamma": 5.0, "lambda": 1e-4, "lambda_graph": weight}
        training = train(TrainingTask(rows_of(dense), class_indices, ["a", "b"], name, options))
        errors[weight] = np.mean((training.scores[:, 0] > 0) != truth[training.unlabeled])
    assert errors[1.0] < 0.05 < 0.2 < errors[1e-9]


@every
def test_a_single_document_has_no_neighbours(name: str) -> None:
    data = small(0, n=2, labeled=2)
    assert np.isfinite(weights_of(solve(name, Problem.of(data.rows, data.y), options_of()))).all()
