"""The sets of the panel and the labels drawn from them."""

import os
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.data import BUILD, FOLDER, load, tfidf

Draw = Literal["balanced", "random"]
DRAWS: tuple[Draw, ...] = ("balanced", "random")

LABELS = {
    "reuters-r8": 5,
    "sms-spam": 10,
    "webkb4-stemmed": 10,
    "20news-bydate": 10,
    "mr-sentences": 50,
    "imdb-30k": 25,
    "pcmac": 25,
    "rcv1-ccat-small": 15,
    "real-sim-sample": 10,
    "svmlight-reuters-acq": 10,
    "ssl-text": 50,
    "ssl-usps": 10,
    "ssl-g241c": 10,
    "keel-spambase": 20,
}
"""labels a class"""


class Documents(NamedTuple):
    """A set as the panel uses it."""

    X: sp.csr_matrix
    class_indices: NDArray[np.int32]
    """shape (n_documents,): true class of each document"""
    classes: list[str | int]


class Task(NamedTuple):
    """A set with some of its labels."""

    name: str
    draw: Draw
    seed: int
    labeled: NDArray[np.int64]
    """positions of the labeled documents, ascending"""


@cache
def documents(name: str) -> Documents:
    """A set: texts as TF-IDF of their words, vectorised once; all other documents as they are."""
    if not (FOLDER / name / "docs.jsonl.gz").exists():
        data = load(name)
        return _documents_of(data.X, data.y)
    file = BUILD / "panel" / f"{name}.npz"
    if not file.exists():
        X, y = tfidf(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        whole = file.with_name(f"{os.getpid()}-{file.name}")  # other runs of the panel see it only when it is complete
        np.savez(whole, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y.astype(str))
        whole.replace(file)
    with np.load(file, allow_pickle=False) as stored:
        X = sp.csr_matrix((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
        return _documents_of(X, stored["y"])


def _documents_of(X: sp.csr_matrix, y: NDArray[Any]) -> Documents:
    classes, class_indices = np.unique(y, return_inverse=True)
    return Documents(X, class_indices.astype(np.int32), classes.tolist())


def tasks(names: list[str], seeds: int) -> Iterator[Task]:
    """Every set with both kinds of labels and every seed."""
    for name in names:
        for draw in DRAWS:
            for seed in range(seeds):
                yield Task(name, draw, seed, drawn(documents(name).class_indices, LABELS[name], draw, seed))


def drawn(class_indices: NDArray[np.int32], per_class: int, draw: Draw, seed: int) -> NDArray[np.int64]:
    """Positions of the labeled documents: ``per_class`` of every class, or as many in all, at random but at least one of each class.

    No method can learn a class without labels: draws without one would only add the same error to all methods.
    """
    rng = np.random.default_rng([seed, draw == "random"])
    order = rng.permutation(len(class_indices))
    least = per_class if draw == "balanced" else 1
    firsts = np.concatenate([order[class_indices[order] == class_index][:least] for class_index in range(int(class_indices.max()) + 1)])
    rest = order[~np.isin(order, firsts)]
    missing = per_class * (int(class_indices.max()) + 1) - len(firsts)
    return np.sort(np.concatenate([firsts, rest[:missing]]))
