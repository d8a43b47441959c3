"""Ridge regression of several labels: exact, with labels left out, and better for documents without labels."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.documents.label_sets import LabelSets
from core.documents.rows import FullRows, SparseRows, to_dense
from core.problem import Status
from core.several.ridge import RIDGE
from core.train import Training, train
from core.training import TrainingTask
from tests.core.several.topics import LABELS, WORDS, Topics, sparse
from tests.there import there

TOPICS = Topics(300)


OWN_WORDS = (0, WORDS, 2 * WORDS)


def named(*words: int) -> SparseRows:
    """Names of labels that are a word each."""
    return sparse(np.eye(TOPICS.rows.n_features, dtype=np.float32)[list(words)])


def dense(rows: SparseRows) -> Any:
    return to_dense(rows, rows.indices).astype(np.float64)


def right(training: Training, truth: Any, first: int = 0) -> float:
    """The share of labels, of the documents from the ``first`` unlabeled one on, that are given rightly."""
    return float((training.model.given_labels(there(training.probabilities)) == truth)[first:].mean())


def test_scores_are_those_of_ridge_regression_over_terms_and_principal_directions() -> None:
    """The model is linear in the terms; with its emphasis known, NumPy finds the same."""
    training = train(TOPICS.task(60))
    emphasis = there(training.report)["emphasis"]
    matrix = dense(TOPICS.rows)
    principal = np.linalg.svd(matrix, full_matrices=False)[2][: matrix.shape[1] // 4]
    values = matrix @ matrix.T + emphasis * (matrix @ principal.T) @ (matrix @ principal.T).T
    kernel = values / values[:60, :60].diagonal().mean() + 1
    weights = np.linalg.solve(kernel[:60, :60] + RIDGE * np.eye(60), TOPICS.truth[:60].astype(float))
    expected = kernel[60:, :60] @ weights
    for found, own in zip(training.scores.T, expected.T, strict=True):
        assert np.corrcoef(found, own)[0, 1] > 0.98  # the directions are approximate


@pytest.mark.parametrize("partly", [False, True])
def test_held_out_scores_are_those_of_a_training_without_the_labels(partly: bool, monkeypatch: Any) -> None:
    """Of a document whose labels are known no more, in the same rows; of another barley may be known alone."""
    monkeypatch.setattr("core.several.ridge.EMPHASES", (0.0,))
    monkeypatch.setattr("core.several.ridge._Fit.likelihood", lambda fit, *_: fit.names)

    def trained(*unlabeled: int) -> Training:
        applied: list[Any] = [np.flatnonzero(row).tolist() for row in TOPICS.truth]
        known = [row < 50 and row not in unlabeled for row in range(300)]
        excluded = [[0] if partly and row == 4 and 0 not in own else None for row, own in enumerate(applied)]
        found = [own if known[row] and not excluded[row] else None for row, own in enumerate(applied)]
        sets = LabelSets.of(found, excluded, LABELS)
        return train(TOPICS.task(0, label_sets=sets, class_names=named(*OWN_WORDS)))

    training, without = trained(), trained(10)
    assert there(training.report)["method"] == "ridge"
    assert there(training.report)["names"] == there(without.report)["names"] == 2
    [own] = np.flatnonzero(without.unlabeled == 10)
    assert there(training.held_out)[10] == pytest.approx(without.scores[own], abs=1e-5)
    if partly:
        assert np.isnan(there(training.held_out)[4]).tolist() == [False, True, True]


def test_words_of_unlabeled_documents_lead_to_those_of_no_labeled_one(monkeypatch: Any) -> None:
    """Each label has two sets of words. Most documents with labels have words of one, others of both."""
    rng = np.random.default_rng(0)
    truth = rng.random((600, 3)) < 0.4
    counts = np.zeros((600, 198), np.float32)
    for row in range(600):
        side = rng.integers(2)
        for label in np.flatnonzero(truth[row]):
            first, second = rng.integers(30, size=2), 30 + rng.integers(30, size=2)
            words = np.concatenate([first, second]) if 60 <= row < 400 else [first, second][side]
            np.add.at(counts[row], 60 * label + words, 1)
        np.add.at(counts[row], 180 + rng.integers(18, size=3), 1)
    applied = [np.flatnonzero(own).tolist() if row < 60 else None for row, own in enumerate(truth)]
    sets = LabelSets.of(applied, [None] * 600, LABELS)
    task = TrainingTask(sparse(counts), np.full(600, -1), LABELS, "auto", {}, label_sets=sets)
    training = train(task)
    assert there(training.report)["emphasis"] > 0
    monkeypatch.setattr("core.several.ridge.EMPHASES", (0.0,))
    plain = train(task)
    assert right(training, truth[60:], 340) > right(plain, truth[60:], 340) + 0.03


def test_a_model_is_ready_however_few_the_seconds(monkeypatch: Any) -> None:
    monkeypatch.setattr("core.progress.SECONDS", 0.0)  # every checkpoint asks
    training = train(TOPICS.task(60, options={"seconds": 1e-9}))
    assert training.status is Status.CONVERGED
    report = there(training.report)
    assert report["emphasis"] == 0
    assert report["time"] == {"seconds": 1e-9, "all_methods_tried": False, "solved": True}
    assert "1e-09 seconds were over before all methods were tried" in training.warnings[-1]
    monkeypatch.setattr("core.several.ridge.MOST_LABELED", 59)
    training = train(TOPICS.task(60, options={"seconds": 1e-9}))
    report = there(training.report)
    assert report["method"] == "svm"
    assert not report["time"]["solved"]
    assert np.isfinite(training.scores).all()
    assert "time" not in there(train(TOPICS.task(60)).report)


def test_dense_documents_have_svms() -> None:
    matrix = dense(TOPICS.rows).astype(np.float32)
    full = FullRows.of(matrix)
    stored = SparseRows(full.indptr, np.tile(np.arange(48, dtype=np.uint32), 300), matrix.ravel(), 48)
    assert there(train(replace(TOPICS.task(60), rows=stored)).report)["method"] == "svm"


def test_names_of_labels_are_evidence_and_misleading_ones_count_for_nothing() -> None:
    none = train(TOPICS.task(40))
    own, misleading = (
        train(TOPICS.task(40, class_names=named(*words))) for words in (OWN_WORDS, range(3 * WORDS, 3 * WORDS + 3))
    )
    assert right(own, TOPICS.truth[40:]) > right(none, TOPICS.truth[40:])
    assert there(misleading.report)["names"] == 0
    assert misleading.scores.tolist() == none.scores.tolist()


def test_one_document_of_each_label_tells_that_names_help() -> None:
    of_one_label = TOPICS.truth.sum(axis=1) == 1
    named_rows = (dense(TOPICS.rows)[:, OWN_WORDS] > 0) & TOPICS.truth & of_one_label[:, None]
    labeled = {*named_rows.argmax(axis=0).tolist(), *np.flatnonzero(~TOPICS.truth.any(axis=1))[:20].tolist()}
    applied = [np.flatnonzero(own).tolist() if row in labeled else None for row, own in enumerate(TOPICS.truth)]
    task = TOPICS.task(0, label_sets=LabelSets.of(applied, [None] * 300, LABELS), class_names=named(*OWN_WORDS))
    assert there(train(task).report)["names"] > 0
