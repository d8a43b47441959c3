"""Votes, people who differ, and labels of one class: the tables of ``docs/votes.md``.

``python -m benchmarks.votes [rules|people|one_class …] [--draws N]`` prints them, with what a training costs beside
``auto`` on the certain labels alone.
"""

import argparse
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import stored, texts
from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import fit_terms
from core.documents.votes import Votes
from core.options.text import TextOptions
from core.train import Training, TrainingContext, TrainingTask, train
from tests.there import there

CERTAIN, POSITIVE = (0, 50, 100, 200), (20, 50, 100)
CROWDS = {"3": [0.9, 0.75, 0.6], "5": [0.95, 0.9, 0.75, 0.65, 0.6], "2": [0.9, 0.75]}
ADVERSARY, LAZY, COMMON = 0.2, 1, 0.7
_PEOPLE, _DOCUMENTS = 1500, 6000


class Texts(NamedTuple):
    """Texts in the columns of their terms, and their classes."""

    rows: SparseRows
    truth: NDArray[np.int64]
    classes: list[str]


def read(documents: list[str], labels: NDArray[np.str_]) -> Texts:
    """Texts with terms of their own."""
    given = TextRows.of(documents)
    classes, truth = np.unique(labels, return_inverse=True)
    return Texts(fit_terms(given, TextOptions(), lambda *_: None).read(given).rows, truth, classes.tolist())


def _labels(training: Training, classes: list[str], rows: SparseRows) -> NDArray[np.int64]:
    """The places of the labels that the model gives to rows."""
    places = np.array([classes.index(str(label)) for label in training.model.classes])
    return np.asarray(places[training.model.labels_of(training.model.scores(rows))])


def rules(draws: int) -> str:
    """Test accuracy by votes of rules and certain labels, beside the certain labels alone; passes of both."""
    lines = ["| set | certain labels | with votes | alone | passes |", "| --- | --- | --- | --- | --- |"]
    for name in ("votes-youtube", "votes-semeval"):
        documents = stored(name)
        known, test = ([each for each in documents if each["split"] == split] for split in ("train", "test"))
        given = TextRows.of([each["text"] for each in known])
        terms = fit_terms(given, TextOptions(), lambda *_: None)
        rows, test_rows = terms.read(given).rows, terms.read(TextRows.of([each["text"] for each in test])).rows
        classes = sorted({str(each["label"]) for each in documents})
        truth, wanted = (np.array([classes.index(str(each["label"])) for each in part]) for part in (known, test))
        votes = Votes.none(len(known)).joined({row: each["votes"] for row, each in enumerate(known)}).among(classes)
        for count in CERTAIN:
            found = []
            for seed in range(draws if count else 1):
                chosen = np.random.default_rng(seed).permutation(len(known)) < count
                task = TrainingTask(rows, np.where(chosen, truth, -1), classes, "auto", {}, seed)
                alone = _fit(task) if count else None
                voted = _fit(replace(task, votes=votes))
                said = [None if each is None else _labels(each, classes, test_rows) for each in (voted, alone)]
                right = [np.nan if each is None else float(np.mean(each == wanted)) for each in said]
                found.append([*right, np.nan if alone is None else voted.passes / alone.passes])
            accuracy, of_labels, passes = np.mean(found, axis=0)
            lines.append(f"| {name} | {count} | {accuracy:.3f} | {of_labels:.3f} | {passes:.1f} |")
    return "\n".join(lines)


def people(draws: int) -> str:
    """Accuracy on the messages that simulated people of sms-spam voted on, and that of the majority."""
    lines = ["| people | adversary | majority | with votes |", "| --- | --- | --- | --- |"]
    documents, labels = texts("sms-spam")
    for crowd, rights in CROWDS.items():
        for adversary in (False, True):
            found = []
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                chosen = rng.permutation(len(documents))[:_PEOPLE]
                data = read([documents[row] for row in chosen], labels[chosen])
                given = [*rights[:-1], ADVERSARY] if adversary else rights
                answers = np.where(
                    rng.random((_PEOPLE, len(given))) < given, data.truth[:, None], 1 - data.truth[:, None]
                )
                unread = rng.random(_PEOPLE) < COMMON
                answers[unread, LAZY] = np.bincount(data.truth).argmax()
                cast = rng.random(answers.shape) < rng.uniform(0.4, 0.9, len(given))
                voted = {
                    row: {f"p{by}": data.classes[answers[row, by]] for by in np.flatnonzero(own)}
                    for row, own in enumerate(cast)
                    if own.any()
                }
                votes = Votes.none(_PEOPLE).joined(voted).among(data.classes)
                training = _fit(TrainingTask(data.rows, np.full(_PEOPLE, -1), data.classes, "auto", {}, votes=votes))
                places = training.model.labels_of(training.scores, training.probabilities)
                counts = np.stack([((answers == each) & cast).sum(axis=1) for each in (0, 1)], axis=1)
                most = (counts + 0.1 * rng.random(counts.shape)).argmax(axis=1)
                heard = cast.any(axis=1)
                found.append([np.mean((each == data.truth)[heard]) for each in (most, places)])
            majority, own = np.mean(found, axis=0)
            lines.append(f"| {crowd} | {'yes' if adversary else 'no'} | {majority:.3f} | {own:.3f} |")
    return "\n".join(lines)


def one_class(draws: int) -> str:
    """F1 of a class of which alone some documents are labeled, and how far its estimated share is off."""
    lines = ["| class | labels | F1 | share off by |", "| --- | --- | --- | --- |"]
    sets = [("sms-spam", "spam"), ("reuters-r8", "acq"), ("reuters-r8", "crude"), ("20news-bydate", "rec.sport.hockey")]
    for name, label in sets:
        documents, labels = texts(name)
        chosen = np.random.default_rng(0).permutation(len(documents))[:_DOCUMENTS]
        data = read([documents[row] for row in chosen], np.where(labels[chosen] == label, label, "other"))
        own = data.classes.index(label)
        for count in POSITIVE:
            found = []
            for seed in range(draws):
                known = np.full(len(chosen), -1)
                known[np.random.default_rng(seed).permutation(np.flatnonzero(data.truth == own))[:count]] = own
                training = _fit(TrainingTask(data.rows, known, data.classes, "auto", {}, seed))
                places = np.array([data.classes.index(str(each)) for each in training.model.classes])
                given = places[training.model.labels_of(training.scores, training.probabilities)] == own
                truth = data.truth[training.unlabeled] == own
                f1 = 2 * np.sum(given & truth) / max(1, given.sum() + truth.sum())
                found.append([f1, abs(there(training.report)["share"]["share"] - truth.mean())])
            f1, off = np.mean(found, axis=0)
            lines.append(f"| {name}, {label} | {count} | {f1:.2f} | {off:.3f} |")
    return "\n".join(lines)


def _fit(task: TrainingTask) -> Training:
    return train(task, TrainingContext(threads=1))


def main() -> None:
    """Print the tables that are named, or all."""
    tables = {"rules": rules, "people": people, "one_class": one_class}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.votes", description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*tables, []], metavar="TABLE")
    parser.add_argument("--draws", type=int, default=3)
    asked = parser.parse_args()
    for name in asked.tables or tables:
        print(f"{tables[name](asked.draws)}\n", flush=True)


if __name__ == "__main__":
    main()
