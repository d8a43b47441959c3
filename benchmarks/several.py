"""Several labels on a document: Reuters by the ModApte split, with few labels and with all.

``python -m benchmarks.several [LABELS …] [--draws N]`` trains on the training texts, of which some have labels, and
predicts the test texts. It prints micro and macro F1 over the 90 topics, the error of the estimated frequencies of the
ten largest topics, and the calibration error; with ``--suggest`` also five rounds of 40 suggested labels beside 40
random ones. With ``--nested`` it prints what answers along a tree of labels are worth, with so many labels of each leaf
of 20news, by the dots of its groups, and of cora-hier. With ``--transductive`` the unlabeled texts are the test texts,
and it prints the mean break-even point of the ten largest topics (Joachims, Transductive inference for text
classification using support vector machines, 1999).
"""

import argparse
import json
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import class_indices_of
from benchmarks.data import FOLDER, stored, tfidf
from benchmarks.data import load as load_set
from benchmarks.panel.draws import even
from core.documents.kinds import TextRows
from core.documents.label_sets import LabelSets
from core.documents.rows import SparseRows
from core.documents.text.tfidf import class_names
from core.documents.text.tfidf_fit import fit_terms
from core.evaluation.active_learning import POOL, BalancedMargins, least_certain, representatives
from core.evaluation.measures import LabelConfusion, Reliability
from core.models.tree import STEP, LabelTree
from core.options.text import TextOptions
from core.train import Training, TrainingTask, train
from tests.core.problems import rows_of
from tests.there import there

LARGE, NESTED_DOCUMENTS = 10, 3000


class Reuters(NamedTuple):
    """The texts of the ModApte split in the columns of their terms."""

    train: SparseRows
    test: SparseRows
    truth: NDArray[np.bool_]
    """shape (n_train, n_topics)"""
    test_truth: NDArray[np.bool_]
    topics: list[str]
    names: SparseRows | None
    """the names of topics as terms"""

    @property
    def large(self) -> NDArray[np.int64]:
        """The ten largest topics."""
        return np.argsort(-self.truth.sum(axis=0), kind="stable")[:LARGE]

    @property
    def judged(self) -> NDArray[np.bool_]:
        """shape (n_topics,): topics of training and test texts both."""
        return np.asarray(self.truth.any(axis=0) & self.test_truth.any(axis=0))


def load() -> Reuters:
    """The texts; terms are those of the training texts."""
    documents = stored("reuters-21578")
    splits = np.load(FOLDER / "reuters-21578" / "splits.npz")
    parts = [[documents[row] for row in splits[name]] for name in ("modapte_train", "modapte_test")]
    sets = [[set(filter(None, each["label"].split("|"))) for each in part] for part in parts]
    topics = sorted(set().union(*sets[0]))
    texts = [TextRows.of([each["text"] for each in part]) for part in parts]
    terms = fit_terms(texts[0], TextOptions(), lambda *_: None)
    truth = [np.array([[topic in own for topic in topics] for own in part], bool) for part in sets]
    rows = [terms.read(each).rows for each in texts]
    return Reuters(rows[0], rows[1], truth[0], truth[1], topics, class_names(topics, terms))


def trained(data: Reuters, labeled: NDArray[np.int64], seed: int, drawn: str = "unknown") -> Training:
    """A training with the labels of some of the training texts, as a job that may say how these were drawn."""
    known = np.zeros(len(data.truth), bool)
    known[labeled] = True
    applied = [np.flatnonzero(row).tolist() if own else None for row, own in zip(data.truth, known, strict=True)]
    sets = LabelSets.of(applied, [None] * len(applied), data.topics)
    unknown = np.full(len(known), -1)
    options = {"labels_drawn": drawn}
    return train(
        TrainingTask(data.train, unknown, data.topics, "auto", options, seed, label_sets=sets, class_names=data.names)
    )


class Figures(NamedTuple):
    """Figures of one training."""

    micro: float
    macro: float
    fractions: float
    """mean absolute error of the frequencies of the ten largest topics among the unlabeled texts"""
    calibration: float
    """expected calibration error over all pairs of test text and topic"""
    passes: float


def judged(data: Reuters, training: Training) -> Figures:
    """The figures on the test texts, over the topics of training and test texts."""
    probabilities = np.zeros(data.test_truth.shape)
    given = np.zeros(data.test_truth.shape, bool)
    columns = [data.topics.index(str(label)) for label in training.model.classes]
    known = there(training.model.probabilities(training.model.scores(data.test)))
    probabilities[:, columns], given[:, columns] = known, training.model.given_labels(known)
    counts = LabelConfusion(int(data.judged.sum()))
    counts.add(data.test_truth[:, data.judged], given[:, data.judged])
    pairs = probabilities[:, data.judged].ravel()
    reliability = Reliability.of(
        np.column_stack([1 - pairs, pairs]), data.test_truth[:, data.judged].ravel().astype(np.int64)
    )
    figures, found = there(training.report)["labels"], counts.agreement()
    true = data.truth[training.unlabeled].mean(axis=0) if len(training.unlabeled) else data.truth.mean(axis=0)
    off = [abs(figures.get(data.topics[topic], {"fraction": 0.0})["fraction"] - true[topic]) for topic in data.large]
    return Figures(found.micro.f1, found.macro.f1, float(np.mean(off)), reliability.expected_error, training.passes)


def rounds(data: Reuters, seed: int, *, chosen: bool) -> list[Figures]:
    """Figures after each of five rounds of 40 labels beside 100 random ones: a quarter of them random and the others
    as a call without an option suggests them, or all random. Both count as random ones, as in the service."""
    rng = np.random.default_rng(seed)
    labeled = rng.choice(len(data.truth), 100, replace=False)
    training, found = trained(data, labeled, seed, "random"), []
    for _ in range(5):
        random = rng.choice(training.unlabeled, 10 if chosen else 40, replace=False)
        labeled = np.concatenate([labeled, random, *([suggested(data, training, random)] if chosen else [])])
        training = trained(data, labeled, seed, "random")
        found.append(judged(data, training))
    return found


def suggested(data: Reuters, training: Training, random: NDArray[np.int64]) -> NDArray[np.int64]:
    """Representatives of the texts that the model is least certain of, so that there are 40 with the random ones."""
    n, fresh = 40 - len(random), ~np.isin(training.unlabeled, random)
    probabilities = there(training.probabilities)[fresh]
    pool = BalancedMargins(n * POOL, several=True)
    pool.add(training.unlabeled[fresh], probabilities.argmax(axis=1), least_certain(probabilities).margins)
    offered = pool.balanced
    return offered.positions[representatives(data.train.taken(offered.positions), n, offered.classes)]


def break_even(data: Reuters, n_labeled: int, seed: int) -> float:
    """The mean break-even point of the ten largest topics: the precision of as many test texts as have the topic.

    The unlabeled texts are the test texts. Labeled texts are drawn until each of these topics has one.
    """
    rng = np.random.default_rng(seed)
    labeled = np.zeros(0, np.int64)
    while not data.truth[np.ix_(labeled, data.large)].any(axis=0).all():
        labeled = rng.choice(len(data.truth), n_labeled, replace=False, shuffle=False)
    both = data._replace(
        train=data.train.taken(labeled).followed_by(data.test),
        truth=np.concatenate([data.truth[labeled], data.test_truth]),
    )
    model = trained(both, np.arange(n_labeled), seed).model
    scores = model.scores(data.test)
    found = []
    for topic in data.large:
        applies = data.test_truth[:, topic]
        first = np.argsort(-scores[:, model.classes.index(data.topics[topic])], kind="stable")[: applies.sum()]
        found.append(applies[first].mean())
    return float(np.mean(found))


def print_nested(per_leaf: int, draws: int) -> None:
    """Figures of answers to unlabeled documents, by the tree of a set; the error of a flat model; and by how sure an
    answer must be, how often it is right, how deep, and how often the whole label.
    """
    (X, groups), cora = tfidf("20news-bydate"), load_set("cora-hier")
    names = np.array(json.loads((FOLDER / "cora-hier" / "classes.json").read_bytes())["names"])
    sets = {"20news-bydate": (X, np.char.replace(groups, ".", STEP)), "cora-hier": (cora.X, names[cora.y])}
    print("| set | draw | precision | recall | F1 | leaf error | of a flat model | sure: right, depth, whole |")
    for (name, (X, labels)), draw in product(sets.items(), range(draws)):
        own = np.random.default_rng(draw).choice(len(labels), NESTED_DOCUMENTS, replace=False)
        truth = np.unique(labels[own], return_inverse=True)[1]
        known, classes = class_indices_of(labels[own], even(truth, per_leaf, draw).positions)
        training = train(TrainingTask(rows_of(X[own]), known, classes, "auto", {}, draw))
        truth, likely = truth[training.unlabeled], there(training.probabilities)
        flat = float((training.model.labels_of(training.scores, likely) != truth).mean())
        report = LabelTree(training.model.classes).report(likely, truth)
        figures = [*(report[each] for each in ("precision", "recall", "f1", "leaf_error")), flat]
        curve = "; ".join("{sure}: {right:.2f}, {depth:.2f}, {whole:.2f}".format(**point) for point in report["curve"])
        print(f"| {name} | {draw} |", " | ".join(f"{each:.3f}" for each in figures), "|", curve, "|", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", nargs="*", type=int, default=(100, 300, 1000, 9603))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--suggest", action="store_true")
    parser.add_argument("--transductive", action="store_true")
    parser.add_argument("--nested", action="store_true")
    asked = parser.parse_args()
    if asked.nested:
        print_nested(asked.labels[0], asked.draws)
        return
    data = load()
    if asked.transductive:
        print(*(f"{break_even(data, asked.labels[0], draw):.3f}" for draw in range(asked.draws)))
        return
    print(
        "| labels | draw | micro F1 | macro F1 | frequencies off | calibration error | passes |\n" + "| --- " * 7 + "|"
    )
    for n_labeled in asked.labels:
        for draw in range(asked.draws if n_labeled < len(data.truth) else 1):
            labeled = np.random.default_rng(draw).permutation(len(data.truth))[:n_labeled]
            figures = judged(data, trained(data, labeled, draw))
            print(f"| {n_labeled} | {draw} |", " | ".join(f"{each:.3f}" for each in figures), "|", flush=True)
    for draw, chosen in product(range(asked.draws if asked.suggest else 0), (True, False)):
        for number, each in enumerate(rounds(data, draw, chosen=chosen), 1):
            print(draw, "suggested" if chosen else "random", number, f"{each.micro:.3f} {each.macro:.3f}", flush=True)


if __name__ == "__main__":
    main()
