"""Real pools of unlabeled documents: time, J and error for 100 and 1,000 labels, beside scikit-learn where it can
run."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

from benchmarks.base import table
from benchmarks.data import FOLDER, load, tfidf
from core.train import TrainingTask, train
from tests.core.problems import rows_of

_LABELS = (100, 1000)
_PATIENCE = 8
"""seconds that scikit-learn is given"""


class Pool(NamedTuple):
    """Documents, the first of them labeled in turn; the error is measured on documents with a known class."""

    name: str
    X: sp.csr_matrix
    y: NDArray[Any]
    known: NDArray[np.bool_]
    fractions: dict[str, Any]
    """what Halfmoon is told of the classes: nothing but true fractions where the pool is known to be balanced"""


def section() -> str:
    """The table."""
    lines = [line for pool in _pools() for n_labels in _LABELS for line in _compare(pool, n_labels)]
    heads = ["pool", "labels", "method", "seconds", "J", "error"]
    note = (
        "Labels drawn at random (seed 0); λ = 0.001, λ' = 1, fractions those of the labels except on "
        "`imdb-bow-100k`, which is known to be balanced. "
        "One run each. scikit-learn: LinearSVC (C by its default), SelfTrainingClassifier of logistic regression, "
        f"LabelSpreading (7 neighbours), each given {_PATIENCE} seconds: methods without a row needed more. Error: on "
        "the unlabeled documents whose class is known."
    )
    return f"{note}\n\n{table(heads, lines)}"


def _pools() -> Iterator[Pool]:
    imdb = load("imdb-bow-100k")
    counts = TfidfTransformer(sublinear_tf=True).fit_transform(imdb.X)
    yield Pool("imdb-bow-100k", sp.csr_matrix(counts), imdb.y, imdb.y != 0, {"positive_fraction": 0.5})
    structure = load("ssl-secstr")
    X = sp.csr_matrix(sp.vstack([structure.X, _one_hot(np.load(FOLDER / "ssl-secstr" / "T_extra.npz")["T"])]))
    X.data *= np.float32(1 / np.sqrt(15))
    y = np.concatenate([structure.y, np.full(X.shape[0] - len(structure.y), -1)])
    yield Pool("ssl-secstr + 1.19 million", X, y, y >= 0, {"positive_fraction": "labeled"})
    news, labels = tfidf("20news-bydate")
    yield Pool("20news-bydate", news, labels, np.ones(len(labels), bool), {"positive_fraction": "labeled"})


def _one_hot(class_indices: NDArray[np.uint8]) -> sp.csr_matrix:
    n, width = class_indices.shape
    indices = (class_indices + 21 * np.arange(width)).ravel().astype(np.int32)
    return sp.csr_matrix(
        (np.ones(n * width, np.float32), indices, np.arange(0, n * width + 1, width)), shape=(n, 21 * width)
    )


def _compare(pool: Pool, n_labels: int) -> Iterator[list[str]]:
    labeled = np.sort(np.random.default_rng(0).choice(np.flatnonzero(pool.known), n_labels, replace=False))
    rest = pool.known.copy()
    rest[labeled] = False
    classes, class_indices = np.unique(pool.y[labeled], return_inverse=True)
    known = np.full(len(pool.y), -1, np.int32)
    known[labeled] = class_indices
    rows = rows_of(pool.X)
    for algorithm in ("svm", "tsvm", "da"):
        options = pool.fractions if algorithm != "svm" else {}
        start = time.perf_counter()
        training = train(TrainingTask(rows, known, classes.tolist(), algorithm, options))
        seconds = time.perf_counter() - start
        predicted = classes[training.model.labels_of(training.model.scores(rows))]
        yield _line(pool, n_labels, algorithm, seconds, f"{training.objective:.5f}", predicted, rest)
    for name, fit in _others(pool, labeled, known):
        start = time.perf_counter()
        answer = _within_patience(fit)
        if answer is not None:
            yield _line(pool, n_labels, name, time.perf_counter() - start, "", classes[answer], rest)


def _within_patience(fit: Callable[[], NDArray[Any]]) -> NDArray[Any] | None:
    """The answer of work done in a child process, or None if that takes too long."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(fit()))
    child.start()
    answer = receiver.recv() if receiver.poll(_PATIENCE) else None
    child.kill()
    child.join()
    return answer


def _line(
    pool: Pool,
    n_labels: int,
    method: str,
    seconds: float,
    objective: str,
    predicted: NDArray[Any],
    rest: NDArray[np.bool_],
) -> list[str]:
    error = float(np.mean(predicted[rest] != pool.y[rest]))
    return [pool.name, str(n_labels), method, f"{seconds:.2f}", objective, f"{error:.4f}"]


def _others(
    pool: Pool, labeled: NDArray[np.int64], known: NDArray[np.int32]
) -> Iterator[tuple[str, Callable[[], NDArray[Any]]]]:
    """scikit-learn's methods; each is given the labels and answers with class indices."""
    yield "LinearSVC", lambda: np.asarray(LinearSVC().fit(pool.X[labeled], known[labeled]).predict(pool.X))
    yield (
        "SelfTraining",
        lambda: np.asarray(SelfTrainingClassifier(LogisticRegression()).fit(pool.X, known).predict(pool.X)),
    )
    yield (
        "LabelSpreading",
        lambda: np.asarray(LabelSpreading(kernel="knn", n_neighbors=7).fit(pool.X, known).transduction_),
    )
