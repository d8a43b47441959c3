"""The part of the demo on texts: the default method, meaning, and active learning.

The texts are the docstrings of the functions in four modules of SciPy, and the classes are the modules: real texts that
are installed with the demo. All trainings but one are on terms alone, so that the demo takes seconds.
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

from app.cli.demo.calls import bars, call, found_labels, results, train

MODULES = ("linalg", "signal", "special", "stats")
KNOWN = 5
"""number of texts of each module that are uploaded with their labels"""
ASKED = 20
"""number of texts that are suggested for labeling, and labeled"""
READING_SECONDS = 8
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


def show_texts(client: httpx.Client, console: Console, texts: Texts) -> None:
    """Upload, train; label the suggestions, train again; evaluate, predict, explain.

    Raises CannotStart with what went wrong.
    """
    dataset = call(
        client,
        "POST",
        "/v1/datasets?name=texts",
        content=as_lines(texts),
        headers={"Content-Type": "application/x-ndjson"},
    )
    console.rule("Texts")
    console.print(
        f"{dataset['n_documents']} docstrings of SciPy, {dataset['n_labeled']} of them labeled with the "
        f"module of the function: {', '.join(MODULES)}."
    )
    with bars(console) as progress:
        request = {"dataset": dataset["id"], "model": "functions", "encoder": None}
        supervised = train(client, progress, "supervised SVM", request | {"algorithm": "svm"})
        auto = train(client, progress, "auto, the default", request)
    console.print(_found(client, [supervised, auto], texts))
    console.print(f"auto chose {auto['report']['chosen']['algorithm']}: {escape(auto['report']['chosen']['why'])}.\n")
    _show_meaning(client, console, dataset["id"], texts, auto)
    relabeled = _labeled_as_suggested(client, console, dataset["id"], texts)
    with bars(console) as progress:
        again = train(client, progress, f"auto, {ASKED} labels more", request | {"dataset": relabeled})
    console.print(_evaluations(client, texts, [supervised, auto, again]))
    console.print(_predictions(client))
    answer = call(client, "POST", "/v1/models/functions/explain", json={"documents": [{"text": SENTENCES[0]}], "n": 5})
    terms = ", ".join(f"{term['name']} {term['contribution']:+.2f}" for term in answer["documents"][0]["contributions"])
    console.print(f"Why {answer['documents'][0]['label']} for the first sentence? Contributions of its terms: {terms}.")


def load_texts() -> Texts:
    """The beginnings of all docstrings; every fourth is kept back."""
    found = [text for module in MODULES for text in _texts_of(module)]
    pool = [text for place, text in enumerate(found) if place % 4]
    rng = np.random.default_rng(0)
    known = {
        id
        for module in MODULES
        for id in rng.permutation([text.id for text in pool if text.label == module])[:KNOWN].tolist()
    }
    return Texts(pool, known, found[::4])


def _texts_of(module: str) -> list[Text]:
    imported = import_module(f"scipy.{module}")
    functions = {name: getattr(imported, name) for name in sorted(imported.__all__)}
    said = {
        name: _SECTION.split(inspect.getdoc(function) or "", maxsplit=1)[0].strip()
        for name, function in functions.items()
        if callable(function)
    }
    return [Text(f"{module}.{name}", text, module) for name, text in said.items() if len(text) >= SHORTEST]


def documents_of(texts: Texts) -> list[Document]:
    """The documents of the upload."""
    return [
        {"id": text.id, "text": text.text, **({"label": text.label} if text.id in texts.known else {})}
        for text in texts.pool
    ]


def as_lines(texts: Texts) -> bytes:
    """Body of the upload, as NDJSON."""
    return "".join(f"{json.dumps(document)}\n" for document in documents_of(texts)).encode()


def _found(client: httpx.Client, jobs: list[dict[str, Any]], texts: Texts) -> Table:
    hidden = {text.id: text.label for text in texts.pool if text.id not in texts.known}
    table = results(f"{len(hidden)} hidden labels, predicted from {len(texts.known)} known ones", ["method"], ["wrong"])
    for job in jobs:
        given = found_labels(client, job["id"], len(hidden))
        table.add_row(job["algorithm"], f"{np.mean([given[id]['label'] != label for id, label in hidden.items()]):.1%}")
    return table


def _predictions(client: httpx.Client) -> Table:
    answer = call(
        client,
        "POST",
        "/v1/models/functions/predict",
        json={"documents": [{"text": sentence} for sentence in SENTENCES]},
    )
    table = results("New sentences, and the probability of each class", ["sentence"], answer["classes"])
    for sentence, row in zip(SENTENCES, answer["probabilities"], strict=True):
        table.add_row(
            sentence,
            *(
                f"[bold]{probability:.2f}[/]" if probability == max(row) else f"{probability:.2f}"
                for probability in row
            ),
        )
    return table


def _labeled_as_suggested(client: httpx.Client, console: Console, dataset: str, texts: Texts) -> str:
    """Label the texts that the model suggests; returns the id of the dataset that has these labels, too."""
    asked = call(client, "POST", "/v1/models/functions/suggest", json={"dataset": dataset, "n": ASKED})["suggestions"]
    shown = "; ".join(f"{one['id'].partition('.')[2]} ({one['label']} or {one['rival']}?)" for one in asked[:3])
    console.print(f"Suggested for labeling next are {ASKED} texts: {escape(shown)}; … Their labels are added.")
    truth = {text.id: text.label for text in texts.pool}
    body = {"labels": {one["id"]: truth[one["id"]] for one in asked}}
    return str(call(client, "PUT", f"/v1/datasets/{dataset}/labels", json=body)["id"])


def _evaluations(client: httpx.Client, texts: Texts, jobs: list[dict[str, Any]]) -> Table:
    """Evaluation of the models of these jobs."""
    documents = [{"text": text.text, "label": text.label} for text in texts.kept_back]
    table = results(
        f"Evaluation on {len(documents)} texts that were kept back",
        ["version", "method"],
        ["labels", "wrong", "macro F1", "calibration error"],
    )
    for job in jobs:
        version, n_labeled = job["model"]["version"], call(client, "GET", f"/v1/datasets/{job['dataset']}")["n_labeled"]
        answer = call(
            client, "POST", f"/v1/models/functions/versions/{version}/evaluate", json={"documents": documents}
        )
        calibration = f"{answer['calibration']['expected_error']:.3f}" if answer["calibration"] else ""
        table.add_row(
            str(version),
            job["algorithm"],
            str(n_labeled),
            f"{answer['error']:.1%}",
            f"{answer['macro_f1']:.3f}",
            calibration,
        )
    return table


def _show_meaning(client: httpx.Client, console: Console, dataset: str, texts: Texts, by_terms: dict[str, Any]) -> None:
    """Train on the same labels with the encoder of the service, and compare with the job ``by_terms``."""
    if not any(encoder["default"] for encoder in call(client, "GET", "/v1/encoders")["encoders"]):
        console.print("An encoder would know what the words mean: pip install 'halfmoon[encoder]' brings one.\n")
        return
    request = {"dataset": dataset, "model": "functions-meaning", "options": {"seconds": READING_SECONDS}}
    with bars(console) as progress:
        both = train(client, progress, "auto, with meaning", request)
    read = both["report"]["encoder"]
    table = results("The same labels, by what is known of a text", ["auto on"], ["wrong"])
    truth = {text.id: text.label for text in texts.pool if text.id not in texts.known}
    for title, job in (
        ("terms", by_terms),
        (f"terms and meaning, {read['read']} of {read['texts']} texts read", both),
    ):
        given = found_labels(client, job["id"], len(truth))
        table.add_row(title, f"{np.mean([given[id]['label'] != label for id, label in truth.items()]):.1%}")
    console.print(table)
