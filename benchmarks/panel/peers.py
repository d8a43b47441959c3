"""scikit-learn's two methods for few labels. Their answers do not change, so they are cached in ``build/``."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.data import BUILD
from benchmarks.panel.sets import Task, documents

_NEIGHBOURS = 7
_FOLDER = BUILD / "panel" / "peers"

Peer = Callable[[Task, NDArray[np.int32]], NDArray[Any]]


def self_training(task: Task, known: NDArray[np.int32]) -> NDArray[Any]:
    """SelfTrainingClassifier of logistic regression, all by its defaults."""
    X = documents(task.name).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of logistic regression that it has not converged, on features that are not scaled
        return np.asarray(SelfTrainingClassifier(LogisticRegression()).fit(X, known).predict(X))


def label_spreading(task: Task, known: NDArray[np.int32]) -> NDArray[Any]:
    """LabelSpreading on the 7 nearest neighbours, all else by its defaults; the neighbours are found once a set instead of once a task."""
    graph = _graph(task.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # documents beyond the reach of any label divide by zero there
        fitted = LabelSpreading(kernel=lambda X, Y: graph).fit(documents(task.name).X, known)
    return np.asarray(fitted.transduction_)


PEERS: dict[str, Peer] = {"SelfTraining": self_training, "LabelSpreading": label_spreading}


def answer_of(peer: str, task: Task) -> NDArray[np.int32]:
    """The class indices that a method gives the unlabeled documents of a task, cached."""
    file = _FOLDER / peer / f"{task.name}-{task.draw}-{task.seed}.npz"
    if file.exists():
        with np.load(file, allow_pickle=False) as kept:
            if np.array_equal(kept["labeled"], task.labeled):
                return np.asarray(kept["answer"], np.int32)
    class_indices = documents(task.name).class_indices
    known = np.full(len(class_indices), -1, np.int32)
    known[task.labeled] = class_indices[task.labeled]
    answer = np.delete(PEERS[peer](task, known), task.labeled).astype(np.int32)
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, labeled=task.labeled, answer=answer)
    return answer


def _graph(name: str) -> sp.csr_matrix:
    """The graph of neighbours as LabelSpreading(kernel="knn") builds it."""
    file = _FOLDER / f"{name}-neighbours.npz"
    if not file.exists():
        X = documents(name).X
        graph = NearestNeighbors(n_neighbors=_NEIGHBOURS).fit(X).kneighbors_graph(X, mode="connectivity")
        file.parent.mkdir(parents=True, exist_ok=True)
        sp.save_npz(file, graph)
    return sp.csr_matrix(sp.load_npz(file))
