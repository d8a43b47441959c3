"""Texts: the loop of a person who labels, by the default method.

The texts are what the functions of four modules of SciPy say of themselves, and the question is of which module a function is: real texts
that everybody has who can run the demo.
"""

import inspect
import json
import re
from importlib import import_module
from typing import Any, NamedTuple

import httpx
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.cli.demo.calls import bars, call, found_labels, train

MODULES = ("linalg", "signal", "special", "stats")
KNOWN = 5
"""texts of each module whose labels the service is told"""
ASKED = 20
"""labels that the service then asks for"""
SHORTEST = 60
"""characters; what says less says nothing"""
SENTENCES = (
    "Remove the frequencies above a limit from a recording that was sampled evenly.",
    "The probability that as many of the tosses of a coin are heads.",
    "Solve many systems of equations that share one triangular matrix.",
)
_SECTION = re.compile(r"^[^\n]+\n-{3,}$", re.MULTILINE)


class Text(NamedTuple):
    """A function, what it says of itself, and its module: the truth."""

    id: str
    text: str
    label: str


class Texts(NamedTuple):
    """What is uploaded, of which a few have labels, and what is kept back to evaluate on."""

    pool: list[Text]
    known: set[str]
    """ids"""
    kept_back: list[Text]


def show_texts(client: httpx.Client, console: Console) -> None:
    """Upload, train; label what is suggested, train again; evaluate, predict, explain. Raises CannotStart with what went wrong."""
    texts = load_texts()
    dataset = call(client, "POST", "/v1/datasets?name=texts", content=as_lines(texts), headers={"Content-Type": "application/x-ndjson"})
    console.rule("Texts")
    console.print(
        f"Which module of SciPy is a function of, by what it says of itself? {dataset['n_documents']} texts, {dataset['n_labeled']} labels."
    )
    with bars(console) as progress:
        supervised = train(client, progress, "supervised SVM", {"dataset": dataset["id"], "model": "functions", "algorithm": "svm"})
        auto = train(client, progress, "auto, the default", {"dataset": dataset["id"], "model": "functions"})
    console.print(_found(client, [supervised, auto], texts))
    console.print(f"auto says: {auto['report']['chosen']['why']}.")
    relabeled = _labeled_as_suggested(client, console, dataset["id"], texts)
    with bars(console) as progress:
        again = train(client, progress, "auto, again", {"dataset": relabeled, "model": "functions", "options": {"labels_drawn": "chosen"}})
    console.print(_evaluations(client, texts, [supervised, auto, again]))
    console.print(_predictions(client))
    console.print(_why(client))


def load_texts() -> Texts:
    """The first paragraphs of each function's text, every fourth kept back."""
    found = [text for module in MODULES for text in _texts_of(module)]
    pool = [text for place, text in enumerate(found) if place % 4]
    rng = np.random.default_rng(0)
    known = {id for module in MODULES for id in rng.permutation([text.id for text in pool if text.label == module])[:KNOWN].tolist()}
    return Texts(pool, known, found[::4])


def _texts_of(module: str) -> list[Text]:
    imported = import_module(f"scipy.{module}")
    functions = {name: getattr(imported, name) for name in sorted(imported.__all__)}
    said = {name: _SECTION.split(inspect.getdoc(function) or "", maxsplit=1)[0].strip() for name, function in functions.items() if callable(function)}
    return [Text(f"{module}.{name}", text, module) for name, text in said.items() if len(text) >= SHORTEST]


def as_lines(texts: Texts) -> bytes:
    """The body that is uploaded."""
    documents = [{"id": text.id, "text": text.text, **({"label": text.label} if text.id in texts.known else {})} for text in texts.pool]
    return "".join(f"{json.dumps(document)}\n" for document in documents).encode()


def _found(client: httpx.Client, jobs: list[dict[str, Any]], texts: Texts) -> Table:
    hidden = {text.id: text.label for text in texts.pool if text.id not in texts.known}
    table = Table(title=f"{len(hidden)} hidden labels, found from {len(texts.known)} known ones")
    table.add_column("method")
    table.add_column("error", justify="right")
    for job in jobs:
        given = found_labels(client, job["id"], len(hidden))
        table.add_row(job["algorithm"], f"{np.mean([given[id]['label'] != label for id, label in hidden.items()]):.1%}")
    return table


def _predictions(client: httpx.Client) -> Table:
    answer = call(client, "POST", "/v1/models/functions/predict", json={"documents": [{"text": sentence} for sentence in SENTENCES]})
    table = Table(title="Sentences that it has never seen, and how probable it holds each class")
    table.add_column("sentence")
    for label in answer["classes"]:
        table.add_column(label, justify="right")
    for sentence, row in zip(SENTENCES, answer["probabilities"], strict=True):
        table.add_row(sentence, *(f"[bold]{share:.2f}[/]" if share == max(row) else f"{share:.2f}" for share in row))
    return table


def _why(client: httpx.Client) -> str:
    answer = call(client, "POST", "/v1/models/functions/explain", json={"documents": [{"text": SENTENCES[0]}], "n": 5})
    terms = ", ".join(f"{term['name']} {term['contribution']:+.2f}" for term in answer["documents"][0]["contributions"])
    return f"Why the first is of {answer['documents'][0]['label']}: {terms}."


def _labeled_as_suggested(client: httpx.Client, console: Console, dataset: str, texts: Texts) -> str:
    """Id of a dataset in which the texts that the model asks for have their labels."""
    asked = call(client, "POST", "/v1/models/functions/suggest", json={"dataset": dataset, "n": ASKED})["suggestions"]
    shown = "; ".join(f"{one['id'].partition('.')[2]} ({one['label']} or {one['rival']}?)" for one in asked[:3])
    console.print(f"It asks for the labels of {ASKED} texts: {escape(shown)} … They are told.")
    truth = {text.id: text.label for text in texts.pool}
    body = {"labels": {one["id"]: truth[one["id"]] for one in asked}}
    return str(call(client, "PUT", f"/v1/datasets/{dataset}/labels", json=body)["id"])


def _evaluations(client: httpx.Client, texts: Texts, jobs: list[dict[str, Any]]) -> Table:
    """Of the models that the jobs made."""
    documents = [{"text": text.text, "label": text.label} for text in texts.kept_back]
    table = Table(title=f"Evaluated on {len(documents)} texts that it has never seen")
    for heading in ("version", "method"):
        table.add_column(heading)
    for heading in ("labels", "error", "macro F1", "calibration error"):
        table.add_column(heading, justify="right")
    for job in jobs:
        version, n_labeled = job["model"]["version"], call(client, "GET", f"/v1/datasets/{job['dataset']}")["n_labeled"]
        answer = call(client, "POST", f"/v1/models/functions/versions/{version}/evaluate", json={"documents": documents})
        calibration = f"{answer['calibration']['expected_error']:.3f}" if answer["calibration"] else ""
        table.add_row(str(version), job["algorithm"], str(n_labeled), f"{answer['error']:.1%}", f"{answer['macro_f1']:.3f}", calibration)
    return table
