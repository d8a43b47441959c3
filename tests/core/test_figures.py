"""The published programs' figures on real documents: errors and objectives to be reached."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.base import class_indices_of
from benchmarks.data import FOLDER, DataSet, load
from core.train import Training, TrainingTask, train
from tests.core.problems import linear, rows_of


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not (FOLDER / name / "X.npz").is_file(), reason=f"{FOLDER} has no {name}: set HALFMOON_DATA"
    )


def fit(X: sp.csr_matrix, y: NDArray[np.int32], labeled: NDArray[np.int64], algorithm: str) -> Training:
    options = {} if algorithm == "svm" else {"positive_fraction": 0.5}
    return train(TrainingTask(rows_of(X), *class_indices_of(y, labeled), algorithm, options))


def error(training: Training, scores: NDArray[np.float64], y: NDArray[np.int32]) -> float:
    return float(np.mean(np.array(training.model.classes)[training.model.labels_of(scores)] != y))


def plain_J(data: DataSet, training: Training, train_rows: NDArray[np.int64], labeled: NDArray[np.int64]) -> float:
    """Eqn. 18 from the stored model, by SciPy."""
    w = np.zeros(data.X.shape[1])
    w[training.model.features] = linear(training).coefficients[:, 0]
    scores = data.X[train_rows].astype(np.float64) @ w + linear(training).intercepts[0]
    y = np.where(data.y[train_rows][labeled] == training.model.classes[1], 1.0, -1.0)
    unlabeled = np.delete(scores, labeled)
    return float(
        0.5e-3 * (w @ w + linear(training).intercepts[0] ** 2)
        + 0.5 * np.mean(np.maximum(0, 1 - y * scores[labeled]) ** 2)
        + 0.5 * np.mean(np.maximum(0, 1 - np.abs(unlabeled)) ** 2)
    )


@pytest.mark.data
@needs("svmlin-example")
@pytest.mark.parametrize(("algorithm", "most_error", "most_J"), [("tsvm", 0.075, 0.1340), ("da", 0.062, 0.1240)])
def test_the_example_that_svmlin_ships(algorithm: str, most_error: float, most_J: float) -> None:
    data = load("svmlin-example")
    rows = data.splits["train"]
    labeled = np.flatnonzero(np.isin(rows, data.splits["train_labeled"]))
    training = fit(data.X[rows], data.y[rows], labeled, algorithm)
    test = data.splits["test"]
    assert len(labeled) == 50
    assert error(training, training.model.scores(rows_of(data.X[test])), data.y[test]) <= most_error
    assert training.objective <= most_J
    assert training.objective == pytest.approx(plain_J(data, training, rows, labeled), rel=1e-6)


@pytest.mark.data
@needs("ssl-text")
@pytest.mark.parametrize(
    ("algorithm", "least", "most"), [("svm", 0.2537, 0.2557), ("tsvm", 0.0, 0.228), ("da", 0.0, 0.225)]
)
def test_text_of_the_ssl_book_with_100_labels(algorithm: str, least: float, most: float) -> None:
    """Mean transductive error of the twelve official splits; the others are to be better than the supervised one."""
    data = load("ssl-text")
    errors = []
    for labeled in data.splits["labeled100"]:
        training = fit(data.X, data.y, labeled, algorithm)
        errors.append(error(training, training.scores, data.y[training.unlabeled]))
    assert len(errors) == 12
    assert least <= float(np.mean(errors)) <= most
