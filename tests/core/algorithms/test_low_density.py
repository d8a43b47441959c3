"""∇TSVM: its balance holds exactly, its gradient is zero by finite differences, and no step of SciPy lowers it. Low
density separation: paths against plain Dijkstra, coordinates against scaling by hand, and bent clusters.
"""

import heapq
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from core.algorithms.low_density import weight_stages
from core.errors import InvalidOption
from core.kernels.function import Kernel
from core.kernels.gram import Gram
from core.kernels.paths import path_coordinates, path_squares
from core.options.subspace import RHOS, GradientTsvmOptions, LdsOptions
from core.problem import Expansion, Problem, Status
from core.train import TrainingTask, train
from core.validation.folds import folds_of
from tests.core.problems import Array, arcs, rows_of, small, solve, weights_of

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


def test_stages_grow_hundredfold_to_the_weight() -> None:
    stages = weight_stages(0.7)
    assert len(stages) == 11
    assert stages[-1] == 0.7
    assert stages[0] == pytest.approx(0.007)


def unheard() -> None:
    """Is asked, and lets go on."""


def dijkstra(dense: Array, rho: float) -> Array:
    """The squared distances of the paper's Eqn. 2, one source after the other."""
    n = len(dense)
    steps = np.sqrt(((dense[:, None] - dense[None]) ** 2).sum(axis=2))
    unit = float(np.mean([min(steps[i, j] for j in range(n) if j != i) for i in range(n)]))
    found = np.zeros((n, n))
    for source in range(n):
        lengths, waiting = {source: 0.0}, [(0.0, source)]
        while waiting:
            length, i = heapq.heappop(waiting)
            if length > lengths[i]:
                continue
            for j in range(n):
                longer = length + math.exp(rho * steps[i, j] / unit) - 1.0
                if longer < lengths.get(j, math.inf):
                    lengths[j] = longer
                    heapq.heappush(waiting, (longer, j))
        for j, length in lengths.items():
            found[source, j] = (math.log(1.0 + length) / rho) ** 2
    return found


def gram_of(dense: Array) -> Gram:
    return Gram(rows_of(dense), Kernel("rbf", 0.1))


@pytest.mark.parametrize("rho", [0.5, 4.0])
def test_distances_are_those_of_the_shortest_paths(rho: float) -> None:
    dense = np.random.default_rng(0).standard_normal((30, 3)).astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(path_squares(gram_of(dense), rho, unheard), dijkstra(dense, rho), rtol=1e-3, atol=1e-4)


def test_coordinates_have_these_distances_but_for_what_is_left_out() -> None:
    dense = np.random.default_rng(1).standard_normal((30, 2)).astype(np.float32).astype(np.float64)
    D = dijkstra(dense, 1.0)
    Z = path_coordinates(gram_of(dense), 1.0, 0.02, unheard).rows.matrix.astype(np.float64)
    distances = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    scale = 0.5 * D.mean()
    assert np.abs(distances * scale - D).mean() < 0.15 * D.mean()
    assert (Z**2).sum(axis=1).mean() == pytest.approx(1.0, abs=0.2)
    few = path_coordinates(gram_of(dense), 1.0, 0.5, unheard)
    assert few.rows.n_features < Z.shape[1]


@pytest.mark.parametrize("rho", ["auto", 4.0])
def test_it_tells_bent_clusters_apart_by_two_labels_each(rho: float | str) -> None:
    dense, truth = arcs()
    class_indices = np.full(120, -1, np.int32)
    class_indices[[5, 40, 65, 100]] = 0, 0, 1, 1
    options = {"rho": rho, "positive_fraction": "labeled", "gamma": 5.0}
    training = train(TrainingTask(rows_of(dense), class_indices, ["a", "b"], "lds", options))
    assert training.status is Status.CONVERGED
    assert np.mean((training.scores[:, 0] > 0) != truth[training.unlabeled]) < 0.05
    predicted = training.model.scores(rows_of(dense))[:, 0]
    assert np.mean((predicted > 0) != truth) < 0.05
    assert np.abs(predicted[training.unlabeled] - training.scores[:, 0]).mean() < 0.1
    straight = train(
        TrainingTask(
            rows_of(dense), class_indices, ["a", "b"], "gradient_tsvm", {"kernel": "linear", "positive_fraction": 0.5}
        )
    )
    assert np.mean((straight.scores[:, 0] > 0) != truth[straight.unlabeled]) > 0.1


def chosen_by_hand(problem: Problem, dense: Array) -> float:
    """Of each ρ the labels left out that ∇TSVM over its coordinates misses, then the objectives."""
    y, n, found = problem.y, problem.n_labeled, []
    folds = folds_of((y > 0).astype(int), problem.seed, 5)
    for rho in RHOS:
        Z, measure = path_coordinates(gram_of(dense), rho, 0.1, unheard).rows.matrix.astype(np.float64), np.zeros(2)
        for fold in range(5):
            kept, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            own = Problem.of(rows_of(np.concatenate([Z[kept], Z[n:]])), y[kept])
            result = solve("gradient_tsvm", own, options_of(tolerance=1e-6))
            scores = np.column_stack([Z[out], np.ones(len(out))]) @ weights_of(result)
            measure += np.array([np.sum(y[out] * scores <= 0), result.objective])
        found.append(tuple(measure))
    return RHOS[found.index(min(found))]


@pytest.mark.parametrize("seed", range(6))
def test_rho_is_the_one_by_which_the_fewest_labels_left_out_are_missed(seed: int) -> None:
    data = small(seed, n=60, labeled=20, gap=0.4)
    given = {"lambda": 0.01, "positive_fraction": FRACTION, "gamma": 0.1}
    rhos = "auto", chosen_by_hand(data.problem, data.X[:, :-1])
    found, fixed = (solve("lds", data.problem, LdsOptions.parse({**given, "rho": rho})) for rho in rhos)
    np.testing.assert_array_equal(found.unlabeled_scores, fixed.unlabeled_scores)


def test_a_single_label_of_a_class_chooses_no_rho() -> None:
    data = small(0, n=30, labeled=2)
    found, expected = (
        solve("lds", data.problem, LdsOptions.parse({"positive_fraction": 0.5, "rho": rho})) for rho in ("auto", 4.0)
    )
    np.testing.assert_array_equal(found.unlabeled_scores, expected.unlabeled_scores)


def test_equal_documents_and_no_unlabeled_ones_are_taken() -> None:
    rows = rows_of(np.ones((6, 2)))
    found = solve("lds", Problem.of(rows, np.array([1.0, -1.0])), LdsOptions.parse({"positive_fraction": 0.5}))
    assert np.isfinite(found.unlabeled_scores).all()
    data = small(1, n=12, labeled=12)
    assert solve("lds", data.problem, LdsOptions.parse({})).status is Status.CONVERGED


def test_too_many_documents_are_refused_by_name() -> None:
    with pytest.raises(InvalidOption, match="max_documents"):
        train(
            TrainingTask(
                rows_of(np.eye(8)), np.array([0, 1, *[-1] * 6], np.int32), ["a", "b"], "lds", {"max_documents": 7}
            )
        )
