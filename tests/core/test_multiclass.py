"""More than two classes: one-vs-rest is as many solves alone, labels come back as they were, fractions go to their
classes.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.engine import passes
from core.one_vs_rest import column_of, labels_of, n_classes_of, n_problems, own_scores, phases_of, positives_of
from core.options.base import Options
from core.problem import Problem, Result, Status
from core.progress import Phase
from core.registry import ALGORITHMS
from core.train import TrainingContext, TrainingTask, train
from tests.core.problems import LINEAR, dense_of, labeled, linear, rows_of, solve, weights_of, with_bias
from tests.reference.mfn import minimise
from tests.reference.transductive import labeled_costs

every = pytest.mark.parametrize("name", LINEAR)
GIVEN: dict[str, dict[str, Any]] = {
    **{name: {"lambda": 1e-2, "tolerance": 1e-12} for name in LINEAR},
    **{name: {"C": 2.0, "gamma": 0.3, "tolerance": 1e-6} for name in ("kernel_svm", "ramp_svm", "cccp_tsvm")},
}
K = 4


def clusters(seed: int, gap: float = 1.5, n: int = 120) -> tuple[SparseRows, NDArray[np.int32], NDArray[np.int64]]:
    """Rows, class indices with 24 labeled, the true classes; the labeled rows are scattered."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % K)
    dense = (rng.standard_normal((n, 6)) * 0.5 + gap * np.eye(K, 6)[truth]) * (rng.random((n, 6)) < 0.8)
    class_indices = np.full(n, -1, np.int32)
    for k in range(K):
        some = np.flatnonzero(truth == k)[: 4 + k]
        class_indices[some] = k
    return rows_of(dense), class_indices, truth


def alone(rows: SparseRows, class_indices: NDArray[np.int32], k: int, name: str, options: Options) -> Result:
    """One class against the rest, by one solver over the labeled rows first."""
    order = np.concatenate([np.flatnonzero(class_indices >= 0), np.flatnonzero(class_indices < 0)])
    problem = Problem.of(rows_of(dense_of(rows)[order]), np.where(class_indices[class_indices >= 0] == k, 1.0, -1.0))
    return solve(name, problem, options)


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("threads", [1, 2])
def test_one_vs_rest_is_as_many_solves(monkeypatch: pytest.MonkeyPatch, name: str, threads: int) -> None:
    monkeypatch.setattr(passes, "_SERIAL", 0)
    rows, class_indices, _ = clusters(0)
    given = GIVEN[name] | labeled(name)
    training = train(
        TrainingTask(rows, class_indices, ["a", "b", "c", "d"], name, given), TrainingContext(threads=threads)
    )
    assert training.status is Status.CONVERGED
    total = 0.0
    for k in range(K):
        result = alone(rows, class_indices, k, name, ALGORITHMS[name].options.parse(given))
        atol = 1e-6 if name in LINEAR else 1e-4
        np.testing.assert_allclose(training.scores[:, k], result.unlabeled_scores, atol=atol)
        total += result.objective
    assert training.objective == pytest.approx(total, rel=1e-9 if name in LINEAR else 1e-6)
    assert {point.phase.label for point in training.trace} == set("" if name == "kernel_svm" else "abcd")


@every
def test_two_classes_have_the_second_as_the_positive_one(name: str) -> None:
    rows, class_indices, _ = clusters(1, gap=3.0)
    two = np.where(class_indices >= 0, class_indices % 2, -1).astype(np.int32)
    training = train(TrainingTask(rows, two, ["even", "odd"], name, {}))
    assert training.scores.shape[1] == 1
    predicted = training.model.labels_of(training.model.scores(rows))
    np.testing.assert_array_equal(predicted[two >= 0], two[two >= 0])
    positive = np.where(two[two >= 0] == 1, 1.0, -1.0)
    if name == "svm":
        X = with_bias(dense_of(rows))
        w = minimise(X[two >= 0], *labeled_costs(positive, len(positive)), 1e-3)
        np.testing.assert_allclose(training.scores[:, 0], X[two < 0] @ w, atol=2e-2)


@pytest.mark.parametrize("name", ["tsvm", "da"])
def test_class_fractions_go_to_their_classes(name: str) -> None:
    """Given crosswise and with classes in another order as text than as numbers."""
    rows, class_indices, _ = clusters(2)
    fractions = {"2": 0.4, "10": 0.1, "30": 0.3, "7": 0.2}
    classes = [2, 7, 10, 30]
    given = {"lambda": 1e-2, "tolerance": 1e-12}
    training = train(TrainingTask(rows, class_indices, classes, name, {**given, "class_fractions": fractions}))
    for k, label in enumerate(classes):
        options = ALGORITHMS[name].options.parse({**given, "positive_fraction": fractions[str(label)]})
        np.testing.assert_allclose(
            linear(training).coefficients[:, k],
            weights_of(alone(rows, class_indices, k, name, options))[:-1],
            atol=1e-6,
        )


@pytest.mark.parametrize("name", ["tsvm", "da"])
def test_class_fractions_of_two_classes_are_the_positive_fraction(name: str) -> None:
    rows, class_indices, _ = clusters(3)
    two = np.where(class_indices >= 0, class_indices % 2, -1).astype(np.int32)
    one = train(TrainingTask(rows, two, ["a", "b"], name, {"class_fractions": {"a": 0.3, "b": 0.7}}))
    other = train(TrainingTask(rows, two, ["a", "b"], name, {"positive_fraction": 0.7}))
    third = train(TrainingTask(rows, two, ["a", "b"], name, {"positive_fraction": 0.3}))
    np.testing.assert_array_equal(one.scores, other.scores)
    assert not np.allclose(one.scores, third.scores)


@every
@pytest.mark.parametrize("classes", [["d", "è", "x", "好"], [-3, 0, 5, 2**40]], ids=str)
def test_labels_come_back_as_they_were_given(name: str, classes: list[Any]) -> None:
    rows, class_indices, truth = clusters(4, gap=4.0)
    training = train(TrainingTask(rows, class_indices, classes, name, {}))
    assert list(training.model.classes) == classes
    predicted = [training.model.classes[k] for k in training.model.labels_of(training.model.scores(rows))]
    assert np.mean([label == classes[k] for label, k in zip(predicted, truth, strict=True)]) >= 0.8
    assert all(type(label) is type(classes[0]) for label in predicted)


@every
def test_classes_that_no_row_has_are_left_out(name: str) -> None:
    rows, class_indices, _ = clusters(5)
    sparse = np.where(class_indices >= 0, class_indices % 2 * 2, -1).astype(np.int32)
    options: dict[str, Any] = {} if name == "svm" else {"class_fractions": {"a": 0.5, "c": 0.5}}
    training = train(TrainingTask(rows, sparse, ["a", "b", "c"], name, options))
    same = train(TrainingTask(rows, np.where(sparse == 2, 1, sparse).astype(np.int32), ["a", "c"], name, options))
    assert list(training.model.classes) == ["a", "c"]
    np.testing.assert_array_equal(training.scores, same.scores)


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("n_classes", [2, K])
def test_two_runs_are_the_same_bit_for_bit(monkeypatch: pytest.MonkeyPatch, name: str, n_classes: int) -> None:
    monkeypatch.setattr(passes, "_SERIAL", 0)
    monkeypatch.setattr(passes, "SLICE", 4096)
    rows, class_indices, _ = clusters(6, n=400)
    class_indices = np.where(class_indices >= 0, class_indices % n_classes, -1).astype(np.int32)
    one, other = (
        train(
            TrainingTask(rows, class_indices, list(range(n_classes)), name, GIVEN[name] | labeled(name), seed=seed),
            TrainingContext(threads=2),
        )
        for seed in (0, 1)
    )
    np.testing.assert_equal(one.model.to_arrays(), other.model.to_arrays())
    np.testing.assert_array_equal(one.scores, other.scores)
    assert one.objective == other.objective
    for ones, others in zip(one.trace, other.trace, strict=True):
        assert ones[:2] == others[:2]
        np.testing.assert_array_equal(ones[2:5], others[2:5])
    assert [point.fraction for point in one.trace] == sorted(point.fraction for point in one.trace)
    assert one.passes == other.passes
    assert (one.passes > 0) == (name in LINEAR)


@pytest.mark.usefixtures("every_report")
def test_passes_before_a_stop_are_counted() -> None:
    """Though there is no solution yet."""
    rows, class_indices, _ = clusters(1)
    stop = TrainingContext(observer=lambda point: bool(point.fraction > 0.03), threads=1)
    for algorithm in ("auto", "tsvm"):
        training = train(TrainingTask(rows, class_indices, ["a", "b", "c", "d"], algorithm, {}), stop)
        assert training.status is Status.CANCELLED
        assert training.report is None
        assert training.passes > 0


def test_passes_of_estimates_and_of_probabilities_are_counted() -> None:
    rows, class_indices, _ = clusters(1)
    given: list[dict[str, Any]] = [
        {"class_fractions": "labeled"},
        {"class_fractions": "labeled", "probabilities": True},
        {},
    ]
    plain, calibrated, estimated = (
        train(TrainingTask(rows, class_indices, ["a", "b", "c", "d"], "tsvm", options)).passes for options in given
    )
    assert calibrated > 2 * plain, "three more models, of two thirds of the labels each"
    assert estimated > 1.1 * plain, "the supervised SVM and naive Bayes answer"


@pytest.mark.parametrize(("n_classes", "positives"), [(2, [1]), (3, [0, 1, 2]), (5, [0, 1, 2, 3, 4])])
def test_two_classes_make_one_problem_and_more_make_one_each(n_classes: int, positives: list[int]) -> None:
    assert positives_of(n_classes) == positives
    assert n_problems(n_classes) == len(positives)
    assert n_classes_of(len(positives)) == n_classes
    assert [positives[column_of(class_index, len(positives))] for class_index in range(n_classes)] == (
        positives if n_classes > 2 else [1, 1]
    )


def test_phases_are_told_apart_where_there_are_several() -> None:
    assert phases_of(["a", "b"]) == [Phase()]
    assert [phase.label for phase in phases_of([1, 2, 3])] == [1, 2, 3]


def test_labels_and_their_own_scores() -> None:
    one, three = np.array([[-1.0], [0.0], [2.0]]), np.array([[0.0, 3.0, 3.0], [-1.0, -2.0, -0.5]])
    assert labels_of(one).tolist() == [0, 0, 1]
    assert own_scores(one, labels_of(one)).tolist() == [-1.0, 0.0, 2.0]
    assert labels_of(three).tolist() == [1, 2]
    assert own_scores(three, labels_of(three)).tolist() == [3.0, -0.5]
