"""References of ``auto``: the supervised SVM tuned on the same labels, and the transductive SVM that is told the true
class fractions.
"""

import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.panel.score import Score, Setting, class_fractions
from core.documents.rows import SparseRows
from core.train import TrainingContext, TrainingTask, train

_LAMBDAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_FOLDS = 5


def supervised(setting: Setting) -> Score:
    """The supervised SVM with λ by stratified cross-validation of its error, of equals the larger."""
    start = time.perf_counter()
    rows, told = setting.task("svm", {}).rows.taken(setting.labels.positions), setting.labels.told
    folds = stratified_folds(told, setting.seed)
    best = max(_LAMBDAS, key=lambda ridge: (_hits(rows, told, folds, ridge), ridge))
    training = train(setting.task("svm", {"lambda": best}), TrainingContext(threads=setting.threads))
    seconds = time.perf_counter() - start
    return Score.of(training.model.labels_of(training.scores), setting.truth, setting.n_classes, seconds, f"{best:g}")


def told_fractions(setting: Setting) -> Score:
    """The transductive SVM, given the true class fractions."""
    true = class_fractions(setting.truth, setting.n_classes)
    options = {"lambda": 1e-3, "class_fractions": {str(each): float(share) for each, share in enumerate(true)}}
    start = time.perf_counter()
    training = train(setting.task("tsvm", options), TrainingContext(threads=setting.threads))
    seconds = time.perf_counter() - start
    return Score.of(training.model.labels_of(training.scores), setting.truth, setting.n_classes, seconds)


def stratified_folds(told: NDArray[np.int32], seed: int) -> NDArray[np.int64]:
    """The fold of each label, shape (n_labels,): of every class as many in each, as far as that goes."""
    rng = np.random.default_rng(seed)
    folds, following = np.zeros(len(told), np.int64), 0
    for each in np.unique(told):
        members = rng.permutation(np.flatnonzero(told == each))
        folds[members] = (np.arange(len(members)) + following) % _FOLDS
        following += len(members)
    return folds


def _hits(rows: SparseRows, told: NDArray[np.int32], folds: NDArray[np.int64], ridge: float) -> int:
    hits = 0
    for fold in range(_FOLDS):
        part = np.where(folds == fold, -1, told).astype(np.int32)
        present = np.unique(part[part >= 0])
        if len(present) < 2 or not (folds == fold).any():
            continue
        training = train(
            TrainingTask(rows, part, list(range(int(told.max()) + 1)), "svm", {"lambda": ridge}),
            TrainingContext(threads=1),
        )
        hits += int(np.count_nonzero(present[training.model.labels_of(training.scores)] == told[folds == fold]))
    return hits
