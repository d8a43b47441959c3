"""The sets of the panel."""

import json
import os
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.data import BUILD, FOLDER, load, texts, vectorized

LABELS = {
    "reuters-r8": 5,
    "sms-spam": 10,
    "webkb4-stemmed": 10,
    "20news-bydate": 5,
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
    "20news-rec": 10,
    "20news-religion": 15,
    "reuters-economy": 8,
    "reuters-ship-crude": 10,
    "cora-operating-systems": 10,
    "cora-machine-learning": 8,
    "g50c": 10,
    "keel-heart": 15,
    "keel-pima": 25,
    "keel-wdbc": 10,
    "ssl-digit1": 10,
    "waveform-generated": 10,
    "20news-zipf-0.5": 10,
    "20news-zipf-0.8": 10,
    "20news-zipf-1.2": 10,
    "cora-zipf-0.5": 10,
    "cora-zipf-0.8": 10,
    "cora-zipf-1.2": 10,
    "reuters-topics": 10,
    "reuters-r8-counts": 5,
    "webkb4-stemmed-counts": 10,
    "mr-sentences-counts": 50,
    "20news-rec-counts": 10,
    "20news-hockey-alone": 10,
    "reuters-crude-alone": 10,
    "webkb4-course-alone": 10,
}
"""even labels a class; 20 to 100 in all, more of many classes"""
LARGE = ("20news-bydate", "imdb-30k", "reuters-topics")
"""sets that take minutes a run"""

_PARTS = {
    "20news-rec": ("20news-bydate", ("rec.autos", "rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey")),
    "20news-religion": ("20news-bydate", ("alt.atheism", "soc.religion.christian", "talk.religion.misc")),
    "reuters-economy": ("reuters-21578", ("trade", "money-fx", "interest", "money-supply", "gnp")),
    "reuters-ship-crude": ("reuters-21578", ("ship", "crude")),
}
"""texts of another set that have one of these labels, and no other"""
_ALONE = {
    "20news-hockey-alone": ("20news-rec", "rec.sport.hockey"),
    "reuters-crude-alone": ("reuters-r8", "crude"),
    "webkb4-course-alone": ("webkb4-stemmed", "course"),
}
"""a class of another set against all others, as people ask for one subject: the rest has clusters of its own"""
_SUBSETS = {"cora-operating-systems": ("cora-hier", "subset_OS"), "cora-machine-learning": ("cora-hier", "subset_ML")}
"""rows of another set, by the name of its split"""
_ZIPF = {"20news": "20news-bydate", "cora": "cora-hier"}
"""sets of which documents are left out, so that the sizes of the classes fall as a power of their rank; by the first
part of the names"""
_MOST_DOCUMENTS, _LEAST_DOCUMENTS = 2700, 30
"""documents of such a set, and least of a class"""
_TOPICS, _LEAST_TOPIC = "reuters-topics", 20
"""the topics of a collection that so many documents have, and no other topic"""
_COUNTS = "-counts"
"""ending of the names of sets of texts as counts of words, as people send them"""
_SPARSE = 0.1
"""share of nonzeros below which the columns are words"""


class Documents(NamedTuple):
    """A set as the panel uses it."""

    X: sp.csr_matrix
    class_indices: NDArray[np.int32]
    """shape (n_documents,): true class of each document"""
    classes: list[str | int]

    @property
    def has_words(self) -> bool:
        """Whether its columns are words, so that documents can be found by them."""
        return bool(self.X.nnz < _SPARSE * self.X.shape[0] * self.X.shape[1])


@cache
def documents(name: str) -> Documents:
    """A set: texts as TF-IDF or counts of their words, vectorised once; all other documents as they are."""
    if name in _SUBSETS:
        whole, split = _SUBSETS[name]
        data = load(whole)
        return _documents_of(data.X[data.splits[split]], data.y[data.splits[split]])
    if "-zipf-" in name:
        return _resized(name)
    if name in _ALONE:
        whole, label = _ALONE[name]
        found = documents(whole)
        alone = (found.class_indices == found.classes.index(label)).astype(np.int32)
        return found._replace(class_indices=alone, classes=["other", label])
    as_texts = name.removesuffix(_COUNTS)
    whole, labels = ("reuters-21578", None) if name == _TOPICS else _PARTS.get(as_texts, (as_texts, None))
    if not (FOLDER / whole / "docs.jsonl.gz").exists():
        data = load(name)
        return _documents_of(data.X, data.y)
    file = BUILD / "panel" / f"{name}.npz"
    if not file.exists():
        X, y = _vectorized(whole, _topics() if name == _TOPICS else labels, counts=name != as_texts)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(
            f"{os.getpid()}-{file.name}"
        )  # other runs of the panel see it only when it is complete
        np.savez(partial, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y.astype(str))
        partial.replace(file)
    with np.load(file, allow_pickle=False) as stored:
        X = sp.csr_matrix((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
        return _documents_of(X, stored["y"])


def _resized(name: str) -> Documents:
    """A set with sizes of classes that fall as a power of their rank by size."""
    first, _, power = name.split("-")
    whole = _ZIPF[first]
    if first == "cora":
        data = load(whole)
        X, y = data.X, _upper(whole)[data.y]
    else:
        found = documents(whole)
        X, y = found.X, found.class_indices.astype(np.int64)
    order = np.argsort(-np.bincount(y), kind="stable")
    shares = np.arange(1.0, len(order) + 1.0) ** -float(power)
    sizes = np.maximum(_LEAST_DOCUMENTS, np.round(_MOST_DOCUMENTS * shares / shares.sum())).astype(int)
    places = np.random.default_rng(0).permutation(len(y))
    kept = np.concatenate([places[y[places] == each][:size] for each, size in zip(order, sizes, strict=True)])
    kept.sort()
    return _documents_of(X[kept], y[kept])


def _upper(name: str) -> NDArray[np.int64]:
    """The first level of each class of a set with a tree of classes, by class."""
    names = json.loads((FOLDER / name / "classes.json").read_text())["names"]
    return np.unique([each.split("/")[0] for each in names], return_inverse=True)[1]


def _topics() -> tuple[str, ...]:
    """The topics that enough documents have, and no other topic."""
    counts = Counter(texts("reuters-21578")[1].tolist())
    return tuple(
        sorted(topic for topic, count in counts.items() if topic and "|" not in topic and count >= _LEAST_TOPIC)
    )


def _vectorized(name: str, labels: tuple[str, ...] | None, *, counts: bool) -> tuple[sp.csr_matrix, NDArray[Any]]:
    found, y = texts(name)
    if labels is None:
        return vectorized(found, counts=counts), y
    kept = np.flatnonzero(np.isin(y, labels))
    return vectorized([found[position] for position in kept], counts=counts), y[kept]


def _documents_of(X: sp.csr_matrix, y: NDArray[Any]) -> Documents:
    classes, class_indices = np.unique(y, return_inverse=True)
    return Documents(sp.csr_matrix(X), class_indices.astype(np.int32), classes.tolist())
