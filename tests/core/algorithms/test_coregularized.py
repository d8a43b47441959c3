"""The co-regularised SVM against a direct minimisation over two separate models, and views that help each other."""

import numpy as np
import pytest
from scipy.optimize import minimize

from core.options.linear import SvmOptions
from core.options.subspace import CoregularizedOptions
from core.problem import Problem, Status
from core.train import TrainingTask, train
from tests.core.problems import Array, rows_of, small, solve, weights_of

FRACTION = 0.4


def objective(views: list[Array], y: Array, ridge: float, weight: float, w: Array) -> float:
    """Of (w_1, w_2), term by term; the balance determines the bias of each view."""
    n, first = len(y), views[0].shape[1]
    pairs = zip(views, (w[:first], w[first:]), strict=True)
    scores = [(view - view[n:].mean(axis=0)) @ own + 2 * FRACTION - 1 for view, own in pairs]
    hinges = sum(float((np.maximum(0, 1 - y * o[:n]) ** 2).mean()) for o in scores)
    differ = float(((scores[0][n:] - scores[1][n:]) ** 2).mean())
    return float(0.5 * ridge * w @ w + 0.25 * hinges + 0.5 * weight * differ)


@pytest.mark.parametrize("weight", [0.1, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_minimum_over_both_models(seed: int, weight: float) -> None:
    data = small(seed, n=50, labeled=12, gap=0.4)
    views = [data.X[:, :2], data.X[:, 2:6]]
    problem = Problem(data.rows, data.y, np.ones(50), part_of=np.array([0, 0, 1, 1, 1, 1]))
    options = CoregularizedOptions.parse(
        {"lambda": 0.02, "lambda_views": weight, "tolerance": 1e-14, "positive_fraction": FRACTION}
    )
    result = solve("coregularized_svm", problem, options)

    def value(w: Array) -> float:
        return objective(views, data.y, 0.02, weight, w)

    found = minimize(value, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(found.fun, rel=1e-7)
    np.testing.assert_allclose(2 * weights_of(result)[:-1], found.x, atol=1e-4)
    np.testing.assert_allclose(result.unlabeled_scores, data.X[12:] @ weights_of(result), atol=1e-9)
    assert result.unlabeled_scores.mean() == pytest.approx(2 * FRACTION - 1, abs=1e-9)


def test_a_column_of_one_part_makes_a_view_and_parts_are_those_of_the_documents() -> None:
    data = small(1, n=50, labeled=12, gap=0.4)
    options = CoregularizedOptions.parse({"lambda": 0.02, "positive_fraction": 0.4})
    split = Problem(data.rows, data.y, np.ones(50), part_of=np.array([0, 1, 0, 1, 0, 1]))
    np.testing.assert_array_equal(
        weights_of(solve("coregularized_svm", data.problem, options)),
        weights_of(solve("coregularized_svm", split, options)),
    )
    given = {"lambda": 0.02, "positive_fraction": 0.4}
    parts = {"terms": slice(0, 2), "vectors": slice(2, 6)}
    task = TrainingTask(data.rows, data.class_indices, ["a", "b"], "coregularized_svm", given, parts=parts)
    own = Problem(data.rows, data.y, np.ones(50), part_of=np.array([0, 0, 1, 1, 1, 1]))
    found = solve("coregularized_svm", own, options)
    np.testing.assert_allclose(train(task).scores[:, 0], found.unlabeled_scores, atol=1e-9)


def test_views_that_agree_help_each_other() -> None:
    """Two views of ten columns, independent but for the class: the mean of their errors is less than the SVM's."""
    ours, plain = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = np.where(rng.random(200) < 0.5, 1.0, -1.0)
        truth[:2] = 1.0, -1.0
        X = rng.standard_normal((200, 20)) + 0.5 * truth[:, None]
        problem = Problem(rows_of(X), truth[:8], np.ones(200), part_of=np.repeat([0, 1], 10))
        co = solve("coregularized_svm", problem, CoregularizedOptions.parse({"lambda": 0.01, "positive_fraction": 0.5}))
        ours.append(np.mean(np.sign(co.unlabeled_scores) != truth[8:]))
        svm = solve("svm", problem, SvmOptions(lambda_=0.01))
        plain.append(np.mean(np.sign(svm.unlabeled_scores) != truth[8:]))
    assert np.mean(ours) < np.mean(plain) - 0.01


def test_without_unlabeled_rows_both_views_are_supervised() -> None:
    data = small(1, n=20, labeled=20)
    found = solve("coregularized_svm", data.problem, CoregularizedOptions.parse({"lambda": 0.02}))
    assert found.status is Status.CONVERGED
    assert np.mean(np.sign(data.X @ weights_of(found)) == data.y) > 0.8
