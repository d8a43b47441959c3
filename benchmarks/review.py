"""Worth of doubts and promises: ``python -m benchmarks.review`` writes ``docs/review.md``.

Doubts: labels are flipped at random, and the first doubts are looked at. The rival is cleanlab on the same
probabilities, which is no part of the project's environment (``pip install cleanlab``). Promises: audits of a model are
drawn again and again from documents whose labels are known.
"""

import sys
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import machine, options, table, write
from benchmarks.data import texts, vectorized
from core.evaluation.measures import doubtful
from core.numerics.binomial import promise
from core.train import Training, TrainingContext, TrainingTask, train
from tests.core.problems import rows_of

SETS = ("sms-spam", "reuters-r8", "webkb4-stemmed", "mr-sentences", "20news-bydate", "imdb-30k")
MOST = 4_000
LABELS = 400
FLIPPED = (0.05, 0.10)
AUDITS, AUDITED = 200, 150
PRECISIONS = (0.90, 0.95)
_HEAD = """# Review: what doubts and promises are worth

Made by `python -m benchmarks.review` on:
{machine}.

{n} labels, drawn at random from {most} documents of each set, by `auto` and its defaults.

## Doubts

A share of the labels is flipped to a random other class. Then as many doubts are looked at as labels were flipped.
The table has the share of these that were flipped. Looking at labels at random finds the share that was flipped.
"""
_PROMISES = """
## Promises

A model of the same labels, none flipped, is audited {audits} times with {audited} labels that it was not told.
Each time it is promised that at least a share of the labels above a probability are right.
A promise is kept if that share of all documents above it are right.
It should be kept in at least 95 of 100 audits; an audit that promises nothing keeps its promise.
"""


class Known(NamedTuple):
    """A set of documents, some of them labeled."""

    documents: list[str]
    class_indices: NDArray[np.int32]
    """shape (n_documents,): the true classes"""
    labeled: NDArray[np.int64]
    """ascending"""


def known(name: str, seed: int = 0) -> Known:
    """At most MOST documents of a set, with LABELS random labels."""
    documents, labels = texts(name)
    chance = np.random.default_rng(seed)
    chosen = np.sort(chance.permutation(len(documents))[:MOST])
    _, class_indices = np.unique(labels[chosen], return_inverse=True)
    labeled = np.sort(chance.permutation(len(chosen))[:LABELS])
    return Known([documents[place] for place in chosen.tolist()], class_indices.astype(np.int32), labeled)


def trained(found: Known, labels: NDArray[np.int32]) -> Training:
    """A model by auto; ``labels`` belong to ``found.labeled``."""
    class_indices = np.full(len(found.class_indices), -1, np.int32)
    present, class_indices[found.labeled] = np.unique(labels, return_inverse=True)
    task = TrainingTask(rows_of(vectorized(found.documents)), class_indices, present.tolist(), "auto", {}, seed=0)
    return train(task, TrainingContext(threads=1))


def doubts(name: str, share: float) -> list[str]:
    """A row of the first table."""
    found = known(name)
    chance = np.random.default_rng(1)
    labels = found.class_indices[found.labeled].copy()
    n_classes = int(found.class_indices.max()) + 1
    flipped = chance.permutation(len(labels))[: round(share * len(labels))]
    labels[flipped] = (labels[flipped] + chance.integers(1, n_classes, len(flipped))) % n_classes
    training = trained(found, labels)
    assert training.held_out is not None
    left_out = np.flatnonzero(np.isfinite(training.held_out).all(axis=1))
    probabilities = training.model.calibrated_probabilities(training.held_out[left_out])
    given = np.searchsorted(training.model.classes, labels[left_out])
    wrong = np.isin(left_out, flipped)
    n = len(flipped)
    ours, rival = doubtful(probabilities, given)[:n], cleanlab(probabilities, given, n)
    cells = [f"{share:.0%}", str(n), str(len(ours)), f"{wrong[ours].mean():.2f}" if len(ours) else "–"]
    return [name, *cells, "not measured" if rival is None else f"{wrong[rival].mean():.2f}", f"{wrong.mean():.2f}"]


def cleanlab(probabilities: NDArray[np.float64], labels: NDArray[np.intp], n: int) -> NDArray[np.intp] | None:
    """The first ``n`` labels to look at by cleanlab's normalized margin; None where it is not installed."""
    if find_spec("cleanlab") is None:
        return None
    from cleanlab.rank import get_label_quality_scores

    scores = get_label_quality_scores(labels, probabilities, method="normalized_margin")
    return np.argsort(scores, kind="stable")[:n]


class Audited(NamedTuple):
    """A model's answers on the documents without a label."""

    name: str
    sure: NDArray[np.float64]
    """Probability of the likeliest class, shape (n,)."""
    right: NDArray[np.bool_]
    """Whether that is the class of the document, shape (n,)."""


def audited(name: str) -> Audited:
    """A model of a set without flipped labels."""
    found = known(name)
    training = trained(found, found.class_indices[found.labeled])
    probabilities = training.probabilities
    assert probabilities is not None
    classes = np.asarray(training.model.classes)
    right = classes[np.argmax(probabilities, axis=1)] == found.class_indices[training.unlabeled]
    return Audited(name, probabilities.max(axis=1), right)


def promises(model: Audited) -> list[list[str]]:
    """Rows of the second table, one a precision."""
    name, sure, right = model
    rows = []
    for precision in PRECISIONS:
        chance = np.random.default_rng(2)
        kept, shares = 0, []
        for _ in range(AUDITS):
            sample = chance.choice(len(sure), AUDITED, replace=False)
            promised = promise(sure[sample], right[sample], precision)
            trusted = (
                np.zeros(len(sure), bool)
                if promised is None
                else sure > (-1 if promised.threshold is None else promised.threshold)
            )
            shares.append(trusted.mean())
            kept += not trusted.any() or right[trusted].mean() >= precision
        rows.append(
            [name, f"{precision:.2f}", f"{1 - right.mean():.3f}", f"{kept / AUDITS:.3f}", f"{np.mean(shares):.2f}"]
        )
    return rows


def main(arguments: list[str]) -> None:
    asked = options(__doc__, arguments, sets=tuple(SETS))
    first = [doubts(name, share) for name in asked.sets for share in FLIPPED]
    models = [audited(name) for name in asked.sets]
    second = [row for each in models for row in promises(each)]
    page = _HEAD.format(machine=machine(), n=LABELS, most=f"{MOST:,}")
    page += "\n" + table(
        ["set", "flipped", "labels flipped", "doubts", "share of doubts", "cleanlab", "at random"], first
    )
    page += _PROMISES.format(audits=AUDITS, audited=AUDITED)
    page += "\n" + table(["set", "promised", "error", "kept in", "labeled automatically"], second)
    write("review.md", page)


if __name__ == "__main__":
    main(sys.argv[1:])
