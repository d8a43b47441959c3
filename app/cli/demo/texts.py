"""The part of the demo on texts: the default method, meaning, and active learning.

The texts are the docstrings of the functions in four modules of SciPy, and the classes are the modules: real texts that
are installed with the demo. All trainings but one are on terms alone, so that the demo takes seconds.
"""

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.cli.demo.training import bars, results, share_wrong, train

if TYPE_CHECKING:
    from halfmoon import Dataset, Halfmoon, Job

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
        supervised = train(service, progress, "supervised SVM", data, "functions", algorithm="svm", encoder=None)
        auto = train(service, progress, "auto, the default", data, "functions", encoder=None)
    table = results(f"{len(hidden)} hidden labels, predicted from {len(texts.known)} known ones", ["method"], ["wrong"])
    for job in (supervised, auto):
        table.add_row(job.record.algorithm, f"{share_wrong(job, hidden):.1%}")
    console.print(table)
    console.print(f"auto chose {auto.report['chosen']['algorithm']}: {escape(auto.report['chosen']['why'])}.\n")
    _show_meaning(service, console, data, hidden, auto)
    more = _labeled_as_suggested(service, console, data, texts)
    with bars(console) as progress:
        again = train(service, progress, f"auto, {ASKED} labels more", more, "functions", encoder=None)
    console.print(_evaluations(service, texts, {supervised: data, auto: data, again: more}))
    console.print(_predictions(service))
    explained = service.models["functions"].explain([SENTENCES[0]], n=5).content["documents"][0]
    terms = ", ".join(f"{term['name']} {term['contribution']:+.2f}" for term in explained["contributions"])
    console.print(f"Why {explained['label']} for the first sentence? Contributions of its terms: {terms}.")


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
    """The documents that are uploaded."""
    return [
        {"id": text.id, "text": text.text, **({"label": text.label} if text.id in texts.known else {})}
        for text in texts.pool
    ]


def _predictions(service: "Halfmoon") -> Table:
    found = service.models["functions"].predict(SENTENCES)
    table = results("New sentences, and the probability of each class", ["sentence"], [*map(str, found.classes)])
    for sentence, row in zip(SENTENCES, found.probabilities or (), strict=True):
        shown = [f"[bold]{each:.2f}[/]" if each == max(row) else f"{each:.2f}" for each in row]
        table.add_row(sentence, *shown)
    return table


def _labeled_as_suggested(service: "Halfmoon", console: Console, data: "Dataset", texts: Texts) -> "Dataset":
    """Label the texts that the model suggests; returns the dataset that has these labels, too."""
    asked = service.models["functions"].suggest(data, ASKED, include=())
    shown = "; ".join(f"{each.id.partition('.')[2]} ({each.label} or {each.rival}?)" for each in asked[:3])
    console.print(f"Suggested for labeling next are {ASKED} texts: {escape(shown)}; … Their labels are added.")
    truth = {text.id: text.label for text in texts.pool}
    return data.relabel({each.id: truth[each.id] for each in asked})


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
    options = {"seconds": READING_SECONDS}
    with bars(console) as progress:
        both = train(service, progress, "auto, with meaning", data, "functions-meaning", options=options)
    read = both.report["encoder"]
    table = results("The same labels, by what is known of a text", ["auto on"], ["wrong"])
    table.add_row("terms", f"{share_wrong(by_terms, hidden):.1%}")
    meaning = f"terms and meaning, {read['read']} of {read['texts']} texts read"
    table.add_row(meaning, f"{share_wrong(both, hidden):.1%}")
    console.print(table)
