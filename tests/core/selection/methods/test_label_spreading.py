"""Labels that spread among neighbours: against linear algebra, on curved classes, and as models."""

from typing import Any

import numpy as np
import pytest

from core.errors import ModelTooLarge
from core.models.model import LinearModel
from core.options.base import TrainingSize
from core.problem import Status
from core.selection.methods.label_spreading import NEIGHBOURS, LabelSpreading
from core.selection.registry import METHODS
from tests.core.problems import dense_of, rows_of
from tests.core.selection.pools import Pool, error, fit, kernel_of, rings, selection_data_of, variation
from tests.core.watcher import Watcher


def test_labels_spread_as_linear_algebra_has_it() -> None:
    selection_data = selection_data_of(rings(0, n=80))
    dense, class_indices = dense_of(selection_data.scaled.rows), selection_data.class_indices
    distances = ((dense[:, None] - dense) ** 2).sum(axis=2) + np.diag(np.full(80, np.inf))
    edges = np.zeros((80, 80))
    edges[np.repeat(np.arange(80), NEIGHBOURS), np.argsort(distances, axis=1)[:, :NEIGHBOURS].ravel()] = 1
    edges = np.maximum(edges, edges.T)
    edges /= np.sqrt(np.outer(edges.sum(axis=1), edges.sum(axis=1)))
    for fold in range(4):
        labeled = np.flatnonzero(selection_data.folds != fold)
        seeds = np.zeros((80, 2))
        for class_index in (0, 1):
            seeds[labeled[class_indices[labeled] == class_index], class_index] = 1 / np.count_nonzero(
                class_indices[labeled] == class_index
            )
        solved = 0.1 * np.linalg.solve(np.eye(80) - 0.9 * edges, seeds)
        spread = LabelSpreading(selection_data, kernel_of(selection_data), lambda: None)._scores[fold][:, 0]
        odds = np.log(solved[:, 1] / solved[:, 0])
        unlabeled = odds[len(class_indices) :]
        size = np.abs(unlabeled - np.median(unlabeled)).mean()
        np.testing.assert_allclose(spread, odds / size, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("share", [0.5, 0.25])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_auto_follows_curved_classes_and_predicts_new_documents(share: float, scale: float) -> None:
    data, others = rings(6, share, scale=scale), rings(3, share, scale=scale)
    training = fit(data)
    assert training.report is not None
    assert training.report["chosen"]["algorithm"] == "label_spreading"
    assert [each["algorithm"] for each in training.report["tried"]] == [
        "svm",
        "tsvm",
        "label_spreading",
        "kernel_ridge",
        "naive_bayes",
    ]
    assert training.status is Status.CONVERGED
    assert variation(training, data) < 0.08
    assert error(training, data) < 0.06 < 0.2 < error(fit(data, "tsvm", {"positive_fraction": share}), data)
    assert np.mean(training.model.labels_of(training.model.scores(others.rows)) != others.truth) < 0.08
    np.testing.assert_allclose(training.model.scores(data.rows)[training.unlabeled], training.scores, atol=1e-3)
    assert training.probabilities is not None


def test_a_model_that_is_too_large_is_refused() -> None:
    with pytest.raises(ModelTooLarge):
        fit(rings(2), max_model_bytes=1000)


@pytest.mark.usefixtures("every_report")
def test_a_stop_among_neighbours_ends_it() -> None:
    watcher = Watcher(over=lambda point: point.fraction >= 0.85)
    assert fit(rings(0, n=1200), observer=watcher).status is Status.CANCELLED
    assert watcher.fractions == sorted(watcher.fractions)


@pytest.mark.parametrize("scale", [1e-22, 1e22])
def test_values_beyond_the_distances_of_a_model_are_left_to_linear_ones(scale: float) -> None:
    data = rings(6)
    rows = data.rows._replace(values=(data.rows.values.astype(np.float64) * scale).astype(np.float32))
    training = fit(Pool(rows, data.class_indices, data.truth))
    assert isinstance(training.model, LinearModel)
    scores = training.model.scores(rows)[training.unlabeled]
    np.testing.assert_allclose(scores, training.scores, atol=1e-3)


@pytest.mark.parametrize(
    ("size", "offered"),
    [
        ((1000, 50, 50_000), True),
        ((1000, 5_000, 70_000), False),
        ((50_000, 50, 2_500_000), False),
        ((14, 5, 70), False),
        ((9_000, 4_000, 36_000_000), False),
    ],
)
def test_neighbours_are_looked_for_where_that_means_something_and_is_bearable(
    size: tuple[int, int, int], offered: bool
) -> None:
    n_documents, n_features, n_nonzeros = size
    given = TrainingSize(n_documents, 10, n_nonzeros, n_features, 2)
    assert METHODS["label_spreading"].applies(given) == offered


def test_documents_that_are_all_the_same_have_neighbours_too() -> None:
    class_indices = np.full(40, -1, np.int32)
    class_indices[:8] = np.arange(8) % 2
    training: Any = fit(Pool(rows_of(np.ones((40, 3))), class_indices, np.zeros(40, np.int64)))
    assert np.isfinite(training.scores).all()
