"""One training and what the tables ask of it."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import class_indices_of, rows_of
from benchmarks.kernel.sets import Draw, Split
from core.documents.rows import SparseRows
from core.train import Training, TrainingTask, train


class Fit(NamedTuple):
    """A trained model, its error on the documents that it is measured on, and its seconds."""

    training: Training
    error: float
    seconds: float

    @property
    def n_support(self) -> int:
        return int(self.training.model.facts()["n_support"])


def fit_draw(draw: Draw, algorithm: str, options: Mapping[str, Any], *, true_fraction: bool = False) -> Fit:
    """Train on the labeled rows and the others as unlabeled ones; the error is on the others, whose share of positives may be told."""
    if true_fraction:
        options = {**options, "positive_fraction": float(np.mean(draw.y[draw.unlabeled] > 0))}
    class_indices, classes = class_indices_of(draw.y, draw.labeled)
    start = time.perf_counter()
    training = train(TrainingTask(draw.rows, class_indices, classes, algorithm, options))
    seconds = time.perf_counter() - start
    scores = training.scores
    return Fit(training, _error(training, scores, draw.y[training.unlabeled]), seconds)


def fit_split(split: Split, algorithm: str, options: Mapping[str, Any]) -> Fit:
    """Train on all training rows; the error is on the test rows."""
    rows, test = rows_of(split.X), rows_of(split.X_test)
    class_indices, classes = class_indices_of(split.y, np.arange(len(split.y)))
    start = time.perf_counter()
    training = train(TrainingTask(rows, class_indices, classes, algorithm, options))
    seconds = time.perf_counter() - start
    return Fit(training, _error(training, training.model.scores(test), split.y_test), seconds)


def median_gamma(rows: SparseRows, sample: int = 1500) -> float:
    """1 / (2 m²), m the median distance of rows drawn at random: what factors of γ in the grids are relative to."""
    import scipy.sparse as sp

    X = sp.csr_matrix((rows.values, rows.indices.astype(np.int64), rows.indptr), shape=(rows.n_rows, rows.n_features)).astype(np.float64)
    X = X[np.sort(np.random.default_rng(0).choice(rows.n_rows, min(sample, rows.n_rows), replace=False))]
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    squares = norms[:, None] + norms - 2 * np.asarray((X @ X.T).todense())
    return float(1 / (2 * np.median(squares[np.triu_indices(len(norms), 1)])))


def _error(training: Training, scores: NDArray[np.float64], y: NDArray[Any]) -> float:
    return float(np.mean(np.array(training.model.classes)[training.model.labels_of(scores)] != y))
