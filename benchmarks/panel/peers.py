"""scikit-learn's methods for few labels, each with its options by cross-validation of the labels.

They run on one thread: on so few labels the threads of BLAS wait for each other forty times as long as they work.
"""

import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from threadpoolctl import threadpool_limits

from benchmarks.data import BUILD
from benchmarks.panel.references import stratified_folds
from benchmarks.panel.score import Score, Setting
from benchmarks.panel.sets import documents

Answer = NDArray[np.integer[Any]]
Known = NDArray[np.int32]

_WEIGHTS = (0.1, 1.0, 10.0, 100.0)
_THRESHOLDS = (0.6, 0.75, 0.9)
_NEIGHBOURS, _SPREADS = (7, 15), (0.2, 0.8, 0.99)
_ITERATIONS = 100
_FOLDS = 3


def logistic_regression(setting: Setting) -> Score:
    """LogisticRegression, C by cross-validation."""
    start = time.perf_counter()
    weight = _best_weight(setting)
    return _score(setting, _logistic(weight)(setting.name, setting.known), start, f"C {weight:g}")


def self_training(setting: Setting) -> Score:
    """SelfTrainingClassifier of logistic regression with that C, the threshold by cross-validation."""
    start = time.perf_counter()
    weight = _best_weight(setting)
    best = max(_THRESHOLDS, key=lambda threshold: (_hits(setting, _self_training(weight, threshold)), threshold))
    return _score(
        setting, _self_training(weight, best)(setting.name, setting.known), start, f"C {weight:g}, threshold {best:g}"
    )


def label_spreading(setting: Setting) -> Score:
    """LabelSpreading over nearest neighbours, their number and α by cross-validation."""
    start = time.perf_counter()
    best = max(list(product(_NEIGHBOURS, _SPREADS)), key=lambda pair: _hits(setting, _label_spreading(*pair)))
    return _score(
        setting, _label_spreading(*best)(setting.name, setting.known), start, f"{best[0]} neighbours, α {best[1]:g}"
    )


PEERS: dict[str, Callable[[Setting], Score]] = {
    "logistic regression": logistic_regression,
    "self-training": self_training,
    "label spreading": label_spreading,
}

_Method = Callable[[str, Known], Answer]
"""from the name of a set and the known labels to the class indices of all its documents"""


def peer_score(peer: str, setting: Setting) -> Score:
    """The score of one of PEERS."""
    with threadpool_limits(1):
        return PEERS[peer](setting)


def _score(setting: Setting, answer: Answer, start: float, chosen: str) -> Score:
    unlabeled = np.delete(answer, setting.labels.positions)
    return Score.of(unlabeled, setting.truth, setting.n_classes, time.perf_counter() - start, chosen)


def _best_weight(setting: Setting) -> float:
    return max(_WEIGHTS, key=lambda weight: (_hits(setting, _logistic(weight)), -weight))


def _hits(setting: Setting, method: _Method) -> int:
    """Number of labels that are predicted right by a fit without their fold."""
    known, positions, told = setting.known, setting.labels.positions, setting.labels.told
    folds, hits = stratified_folds(told, setting.seed) % _FOLDS, 0
    for fold in range(_FOLDS):
        left_out = positions[folds == fold]
        part = known.copy()
        part[left_out] = -1
        if len(left_out) and len(np.unique(part[part >= 0])) >= 2:
            hits += int(np.count_nonzero(method(setting.name, part)[left_out] == known[left_out]))
    return hits


def _logistic(weight: float) -> _Method:
    def answer(name: str, known: Known) -> Answer:
        X, labeled = documents(name).X, np.flatnonzero(known >= 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged, on features that are not scaled
            return np.asarray(
                LogisticRegression(C=weight, max_iter=_ITERATIONS).fit(X[labeled], known[labeled]).predict(X)
            )

    return answer


def _self_training(weight: float, threshold: float) -> _Method:
    def answer(name: str, known: Known) -> Answer:
        X = documents(name).X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = SelfTrainingClassifier(LogisticRegression(C=weight, max_iter=_ITERATIONS), threshold=threshold)
            return np.asarray(classifier.fit(X, known).predict(X))

    return answer


def _label_spreading(neighbours: int, spread: float) -> _Method:
    def answer(name: str, known: Known) -> Answer:
        graph = _graph(name, neighbours)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # documents beyond the reach of any label divide by zero there
            fitted = LabelSpreading(kernel=lambda X, Y: graph, alpha=spread).fit(documents(name).X, known)
        return np.asarray(fitted.transduction_)

    return answer


def _graph(name: str, neighbours: int) -> sp.csr_matrix:
    """The graph of neighbours as LabelSpreading(kernel="knn") builds it, kept in ``build/``."""
    file = BUILD / "panel" / f"{name}-{neighbours}-neighbours.npz"
    if not file.exists():
        X = documents(name).X
        graph = NearestNeighbors(n_neighbors=neighbours).fit(X).kneighbors_graph(X, mode="connectivity")
        file.parent.mkdir(parents=True, exist_ok=True)
        sp.save_npz(file, graph)
    return sp.csr_matrix(sp.load_npz(file))
