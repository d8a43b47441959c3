"""The methods of the panel on one task."""

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import rows_of
from benchmarks.panel import measures
from benchmarks.panel.peers import PEERS, answer_of
from benchmarks.panel.sets import Task, documents
from core.documents.rows import SparseRows
from core.evaluation import Reliability
from core.train import Training, TrainingContext, TrainingTask, train

_LAMBDAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_FOLDS = 5


class Score(NamedTuple):
    """Measures of a method on a task; None where it has no such answer."""

    error: float
    seconds: float
    variation: float | None = None
    """total variation between its class fractions and the true ones"""
    calibration: float | None = None
    """expected calibration error"""
    chosen: str = ""
    """algorithm or λ that it selected"""


def scores(task: Task, threads: int | None = None) -> dict[str, Score]:
    """Each method's score on the unlabeled documents of a task."""
    data = documents(task.name)
    rows = rows_of(data.X)
    class_indices = np.full(len(data.class_indices), -1, np.int32)
    class_indices[task.labeled] = data.class_indices[task.labeled]
    truth = np.delete(data.class_indices, task.labeled)
    found = {
        "SVM": _supervised(rows, class_indices, truth, task.seed, threads),
        "TSVM, true fractions": _true_fractions(rows, class_indices, truth, threads),
        "auto": _auto(rows, class_indices, truth, task.seed, threads),
    }
    return found | {peer: Score(measures.error(answer_of(peer, task), truth), 0.0) for peer in PEERS}


def _answer(training: Training) -> NDArray[np.intp]:
    return training.model.labels_of(training.scores)


def _classes(class_indices: NDArray[np.int32]) -> list[str | int]:
    return list(range(int(class_indices.max()) + 1))


def _supervised(rows: SparseRows, class_indices: NDArray[np.int32], truth: NDArray[np.int32], seed: int, threads: int | None) -> Score:
    """The supervised SVM with λ by stratified cross-validation of its error, of equals the larger."""
    start = time.perf_counter()
    labeled = np.flatnonzero(class_indices >= 0)
    known = rows.taken(labeled)
    folds = _stratified(class_indices[labeled], seed)
    best = max(_LAMBDAS, key=lambda ridge: (_hits(known, class_indices[labeled], folds, ridge), ridge))
    training = train(TrainingTask(rows, class_indices, _classes(class_indices), "svm", {"lambda": best}), TrainingContext(threads=threads))
    seconds = time.perf_counter() - start
    return Score(measures.error(_answer(training), truth), seconds, chosen=f"{best:g}")


def _stratified(class_indices: NDArray[np.int32], seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    folds, following = np.zeros(len(class_indices), np.int64), 0
    for class_index in np.unique(class_indices):
        members = rng.permutation(np.flatnonzero(class_indices == class_index))
        folds[members] = (np.arange(len(members)) + following) % _FOLDS
        following += len(members)
    return folds


def _hits(rows: SparseRows, class_indices: NDArray[np.int32], folds: NDArray[np.int64], ridge: float) -> int:
    hits = 0
    for fold in range(_FOLDS):
        part = np.where(folds == fold, -1, class_indices).astype(np.int32)
        present = np.unique(part[part >= 0])
        if len(present) < 2 or not (folds == fold).any():
            continue
        training = train(TrainingTask(rows, part, _classes(class_indices), "svm", {"lambda": ridge}), TrainingContext(threads=1))
        hits += int(np.count_nonzero(present[_answer(training)] == class_indices[folds == fold]))
    return hits


def _true_fractions(rows: SparseRows, class_indices: NDArray[np.int32], truth: NDArray[np.int32], threads: int | None) -> Score:
    """The transductive SVM, given the true class fractions."""
    classes = _classes(class_indices)
    fractions = {str(label): float(fraction) for label, fraction in zip(classes, measures.class_fractions(truth, len(classes)), strict=True)}
    start = time.perf_counter()
    training = train(
        TrainingTask(rows, class_indices, classes, "tsvm", {"lambda": 1e-3, "class_fractions": fractions}), TrainingContext(threads=threads)
    )
    return Score(measures.error(_answer(training), truth), time.perf_counter() - start)


def _auto(rows: SparseRows, class_indices: NDArray[np.int32], truth: NDArray[np.int32], seed: int, threads: int | None) -> Score:
    classes = _classes(class_indices)
    start = time.perf_counter()
    training = train(TrainingTask(rows, class_indices, classes, "auto", {}, seed=seed), TrainingContext(threads=threads))
    seconds = time.perf_counter() - start
    assert training.report is not None
    assert training.probabilities is not None
    found = np.array([training.report["class_fractions"][str(label)] for label in classes])
    return Score(
        measures.error(_answer(training), truth),
        seconds,
        measures.total_variation(found, measures.class_fractions(truth, len(classes))),
        Reliability.of(training.probabilities, truth).expected_error,
        training.report["chosen"]["algorithm"],
    )
