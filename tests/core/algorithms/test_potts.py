"""Annealing of all classes together: balanced beliefs, the slow reference, and meetings that all classes come to."""

from typing import Any

import numpy as np
import pytest

from core.algorithms.potts import CoupledPath, class_beliefs
from core.engine import passes
from core.options.linear import AnnealingOptions
from core.options.subspace import PottsOptions
from core.problem import Status
from core.train import TrainingContext, TrainingTask, train
from tests.core.problems import dense_of, linear, rows_of, small, solve, weights_of, with_bias
from tests.reference import annealing as reference

K = 3
TEMPERATURES = [10 / 1.5**stage for stage in range(20)]


def task(seed: int, n_classes: int = K, n: int = 60, gap: float = 1.0, **options: Any) -> TrainingTask:
    """Clusters, three labels of each."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    dense = rng.standard_normal((n, n_classes + 1)) * 0.6 + gap * np.eye(n_classes, n_classes + 1)[truth]
    class_indices = np.where(np.arange(n) < 3 * n_classes, truth, -1).astype(np.int32)
    given = {"lambda": 1e-2, "positive_fraction": "labeled", **options}
    return TrainingTask(rows_of(dense), class_indices, list(range(n_classes)), "potts", given)


@pytest.mark.parametrize("temperature", [10.0, 1.0, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_beliefs_are_those_of_the_dual_problem(seed: int, temperature: float) -> None:
    rng = np.random.default_rng(seed)
    gains, weights, fractions = rng.normal(0, 2, (4, 30)), rng.random(30) + 0.5, rng.random(4) + 0.3
    weights, fractions = weights / weights.sum(), fractions / fractions.sum()
    found = class_beliefs(gains, weights, fractions, temperature, np.zeros(4))
    np.testing.assert_allclose(found.sum(axis=0), 1.0, atol=1e-12)
    np.testing.assert_allclose(found @ weights, fractions, atol=2e-6)
    np.testing.assert_allclose(found, reference.class_beliefs(gains, weights, fractions, temperature), atol=2e-3)


@pytest.mark.parametrize("fractions", [[0.0, 0.4, 0.6], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], ids=str)
def test_classes_that_no_row_is_of_are_not_believed_in(fractions: list[float]) -> None:
    gains = np.random.default_rng(0).normal(0, 2, (3, 20))
    found = class_beliefs(gains, np.full(20, 0.05), np.array(fractions), 1.0, np.zeros(3))
    np.testing.assert_allclose(found.mean(axis=1), fractions, atol=1e-6)


def test_one_guess_of_the_multipliers_leads_where_another_does() -> None:
    gains, weights, fractions = np.random.default_rng(1).normal(0, 2, (3, 40)), np.full(40, 1 / 40), np.full(3, 1 / 3)
    ends = [class_beliefs(gains, weights, fractions, 0.5, np.array(guess)) for guess in ([0.0, 0, 0], [3.0, -2, 9])]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-4)


def reference_J(given: TrainingTask) -> float:
    labeled = given.class_indices >= 0
    X = with_bias(dense_of(given.rows))
    return reference.anneal_classes(X, given.class_indices[labeled], 1e-2, 1.0, np.full(K, 1 / K), TEMPERATURES)


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_ends_no_lower(seed: int) -> None:
    given = task(seed, n=36, tolerance=1e-10)
    training = train(given)
    W = np.column_stack([linear(training).coefficients.T, linear(training).intercepts])
    X, labels = with_bias(dense_of(given.rows)), given.class_indices[: 3 * K]
    assert training.status is Status.CONVERGED
    assert training.objective == pytest.approx(reference.J_of_classes(X, labels, 1e-2, 1.0, W), rel=1e-9)
    assert training.objective <= reference_J(given) * 1.02


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_of_two_classes_it_is_annealing(kernel: str) -> None:
    data = small(2, n=40, labeled=8, gap=0.4)
    one, other = (
        TrainingTask(data.rows, data.class_indices, ["a", "b"], name, {"kernel": kernel, "positive_fraction": 0.4})
        for name in ("potts", "kernel_da")
    )
    np.testing.assert_array_equal(train(one).scores, train(other).scores)
    if kernel == "linear":
        plain = solve("da", data.problem, AnnealingOptions(positive_fraction=0.4))
        joint = solve("potts", data.problem, PottsOptions(positive_fraction=0.4))
        np.testing.assert_array_equal(weights_of(joint), weights_of(plain))


@pytest.mark.parametrize(("n_classes", "kernel"), [(3, "rbf"), (20, "linear")])
def test_more_classes_than_fit_into_a_block_meet_too(
    monkeypatch: pytest.MonkeyPatch, n_classes: int, kernel: str
) -> None:
    monkeypatch.setattr(passes, "_SERIAL", 0)
    given = task(0, n_classes, n=6 * n_classes, gap=4.0, kernel=kernel)
    one, other = (train(given, TrainingContext(threads=threads)) for threads in (1, 2))
    assert one.status is Status.CONVERGED
    np.testing.assert_array_equal(one.scores, other.scores)
    predicted = one.model.labels_of(one.scores)
    assert np.mean(predicted == one.unlabeled % n_classes) >= 0.9


def test_a_row_given_twice_is_its_weight_doubled() -> None:
    given = task(1, tolerance=1e-12)
    n_labeled = int((given.class_indices >= 0).sum())
    twice = np.concatenate([np.arange(n_labeled), np.arange(0, n_labeled, 2), np.arange(n_labeled, 60)])
    repeated = TrainingTask(
        given.rows.taken(twice), given.class_indices[twice], given.classes, "potts", {**given.options}
    )
    weights = np.where((np.arange(60) < n_labeled) & (np.arange(60) % 2 == 0), 2.0, 1.0)
    weights[n_labeled:] = 1.0
    one, other = train(repeated), train(TrainingTask(**{**given.__dict__, "weights": weights}))
    assert one.objective == pytest.approx(other.objective, rel=1e-4)


def test_without_unlabeled_rows_each_class_is_the_svm() -> None:
    data = task(2, n=9, tolerance=1e-12)
    supervised = TrainingTask(data.rows, data.class_indices, data.classes, "svm", {"lambda": 1e-2, "tolerance": 1e-12})
    np.testing.assert_allclose(linear(train(data)).coefficients, linear(train(supervised)).coefficients, atol=1e-5)


def test_a_class_that_fails_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the others would wait for it."""
    ends = iter([Status.CONVERGED, Status.NUMERICAL_ERROR, *[Status.CONVERGED] * 1000])
    compare = CoupledPath.compare
    monkeypatch.setattr(CoupledPath, "compare", lambda path, status: compare(path, next(ends)))
    assert train(task(4)).status is Status.NUMERICAL_ERROR
