"""Held-out scores, of every label that a fold leaves out by models that were not told it, and probabilities of every
algorithm, learned from these.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.evaluation.measures import Reliability
from core.options.linear import SvmOptions
from core.problem import Linear, Problem, Result, Status
from core.progress import Stopped
from core.registry import ALGORITHMS
from core.train import TrainingTask, train
from core.validation.folds import cross_val_scores, folds_of
from tests.core.problems import solve
from tests.core.selection.pools import fit, pool
from tests.core.watcher import Watcher
from tests.stores import sparse, two_clouds
from tests.there import there

OPTIONS: dict[str, dict[str, Any]] = {"ctsvm": {"tolerance": 1e-2}, "cuts3vm": {"C": 10.0}}
BATCH = two_clouds(60, 6)
LABELED = np.array([label is not None for label in BATCH.labels])
TRUE = np.where(LABELED, np.arange(60) % 2, -1)


def task(algorithm: str, class_indices: Any = TRUE, **options: Any) -> TrainingTask:
    return TrainingTask(
        sparse(BATCH.rows), np.asarray(class_indices), range(int(max(class_indices)) + 1), algorithm, options
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_probabilities_on_request(name: str) -> None:
    data = pool(0, [0.8, 0.2], per_class=10, n=200)
    options = OPTIONS.get(name, {})
    plain, training = fit(data, name, options), fit(data, name, options | {"probabilities": True})
    assert plain.probabilities is None
    assert training.probabilities is not None
    np.testing.assert_array_equal(training.scores, plain.scores)
    predicted = there(training.model.probabilities(training.model.scores(data.rows)))
    np.testing.assert_allclose(training.probabilities, predicted[training.unlabeled], atol=1e-3)
    assert Reliability.of(training.probabilities, data.truth[training.unlabeled]).expected_error < 0.2
    assert training.report is not None
    assert (training.report["confidence"] == "none") == any(
        "cannot be told from chance" in warning for warning in training.warnings
    )
    if "class_fractions" in training.report:
        np.testing.assert_allclose(
            training.probabilities.mean(axis=0), list(training.report["class_fractions"].values()), atol=1e-3
        )


def test_labels_that_mean_nothing_are_said_to_mean_nothing() -> None:
    """Labels drawn by lot: the job says so, by a warning and in its report."""
    levels = []
    for seed in range(4):
        data = pool(seed, [0.5, 0.5], per_class=10, n=200)
        labeled, rng = np.flatnonzero(data.class_indices >= 0), np.random.default_rng(seed)
        class_indices = data.class_indices.copy()
        class_indices[labeled] = rng.permutation(class_indices[labeled])
        training = fit(data._replace(class_indices=class_indices))
        assert training.report is not None
        levels.append(training.report["confidence"])
        said = any("cannot be told from chance" in warning for warning in training.warnings)
        assert said == (levels[-1] == "none")
        assert ("cannot be told from chance" in training.report["summary"][0]) == said
    assert levels.count("none") >= 3


def test_more_classes_have_probabilities_too() -> None:
    data = pool(1, [0.6, 0.3, 0.1], per_class=8, gap=3.0)
    training = fit(data, "tsvm", {"probabilities": True})
    assert training.probabilities is not None
    np.testing.assert_allclose(training.probabilities.sum(axis=1), 1)
    assert Reliability.of(training.probabilities, data.truth[training.unlabeled]).expected_error < 0.15


def test_all_documents_labeled() -> None:
    data = pool(0, [0.8, 0.2], n=150)
    training = fit(data._replace(class_indices=data.truth.astype(np.int32)), "svm", {"probabilities": True})
    found = there(training.model.probabilities(training.model.scores(data.rows)))
    assert found[:, 1].mean() == pytest.approx(np.mean(data.truth == 1), abs=0.05)


def test_held_out_scores_are_those_of_models_that_never_saw_the_label() -> None:
    data = pool(2, [0.5, 0.5], n=60)
    labeled, unlabeled = np.flatnonzero(data.class_indices >= 0), np.flatnonzero(data.class_indices < 0)
    rows, class_indices = data.rows.taken(np.concatenate([labeled, unlabeled])), data.class_indices[labeled]
    options = SvmOptions(lambda_=0.1, tolerance=1e-12)

    def one(fold: int, rows: SparseRows, kept: NDArray[np.int64]) -> list[Result]:
        return [solve("svm", Problem.of(rows, np.where(class_indices[kept] == 1, 1.0, -1.0)), options)]

    found = cross_val_scores(rows, class_indices, 1, 7, one)
    folds = folds_of(class_indices, 7)
    for row, fold in enumerate(folds):
        others = np.flatnonzero(folds != fold)
        decision = solve(
            "svm", Problem.of(rows.taken(others), np.where(class_indices[others] == 1, 1.0, -1.0)), options
        ).decision
        assert isinstance(decision, Linear)
        dense = np.zeros(rows.n_features)
        part = rows.taken(np.array([row]))
        dense[part.indices] = part.values
        assert found[row, 0] == pytest.approx(dense @ decision.coefficients + decision.intercept, abs=1e-6)


@pytest.mark.usefixtures("every_report")
def test_a_stop_while_labels_are_left_out_ends_it_without_probabilities() -> None:
    data = pool(0, [0.6, 0.4])
    watcher = Watcher(over=lambda point: point.phase.fold is not None)
    options = {"positive_fraction": 0.4}
    training = fit(data, "da", options | {"probabilities": True}, observer=watcher)
    assert str(watcher.points[-1].phase).startswith("fold=0/")
    assert training.status is Status.CANCELLED
    assert training.probabilities is None
    np.testing.assert_array_equal(training.scores, fit(data, "da", options).scores)


def test_a_stop_while_rows_are_copied_comes_before_the_solver() -> None:
    data = pool(2, [0.5, 0.5], n=60)

    def stop() -> None:
        raise Stopped

    def never(fold: int, rows: SparseRows, kept: NDArray[np.int64]) -> list[Result]:
        raise AssertionError

    with pytest.raises(Stopped):
        cross_val_scores(data.rows, np.array([0, 0, 1, 1]), 1, 7, never, stop)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("svm", "core.train.fit_calibration"),
        ("auto", "core.selection.auto.calibration_at"),
    ],
)
def test_a_stop_while_probabilities_are_found_keeps_the_model(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, options = pool(2, [0.5, 0.5], n=60), {} if name == "auto" else {"probabilities": True}
    whole = fit(data, name, options)

    def stop(*given: Any) -> None:
        raise Stopped

    monkeypatch.setattr(module, stop)
    training = fit(data, name, options)
    assert training.status is Status.CANCELLED
    assert training.probabilities is None
    np.testing.assert_array_equal(training.scores, whole.scores)


@pytest.mark.parametrize(
    ("algorithm", "options"), [("auto", {}), ("svm", {"probabilities": True}), ("tsvm", {"probabilities": True})]
)
def test_labels_left_out_are_scored(algorithm: str, options: dict[str, Any]) -> None:
    training = train(task(algorithm, **options))
    assert training.held_out is not None
    assert training.held_out.shape == (12, 1)
    assert training.model.labels_of(training.held_out).tolist() == TRUE[LABELED].tolist()


@pytest.mark.parametrize(("algorithm", "options"), [("auto", {}), ("svm", {"probabilities": True})])
def test_a_wrong_label_is_not_repeated(algorithm: str, options: dict[str, Any]) -> None:
    """A model repeats a label that it is told; held-out scores come from the other labels."""
    wrong = TRUE.copy()
    wrong[4] = 1
    training = train(task(algorithm, wrong, **options))
    assert training.model.labels_of(there(training.held_out))[4] == 0


def test_the_only_label_of_a_class_is_left_out_by_no_fold() -> None:
    three = TRUE.copy()
    three[5] = 2
    training = train(task("auto", three))
    assert np.flatnonzero(np.isnan(there(training.held_out)).any(axis=1)).tolist() == [5]


def test_without_cross_validation_there_are_none() -> None:
    assert train(task("svm")).held_out is None
