"""Texts with the vectors of a pre-trained encoder: ``python -m benchmarks.embeddings`` writes the figures of
``docs/embeddings.md``.

The encoder is the one at hand, of the extra ``encoder``. Vectors and results are kept in ``build/embeddings``: a
run that was cut short goes on where it ended.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegressionCV

from benchmarks.base import class_indices_of, machine, options, put_section, table
from benchmarks.data import BUILD, texts
from benchmarks.panel.results import Results, code_digest
from core.documents.kinds import DENSE, PartRows, TextRows
from core.documents.part_columns import Block, PartColumns, centre_of
from core.documents.rows import SparseRows
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import NUMBERS
from core.options.text import TextOptions
from core.train import TrainingContext, TrainingTask, train
from storage.process.settings import Settings
from tests.core.problems import rows_of
from workers.encoders.catalogue import AT_HAND, Encoders

POOLS = {"sms-spam": 1500, "mr-sentences": 1500, "imdb-30k": 1500, "reuters-r8": 1800, "20news-bydate": 1800}
"""documents by set, drawn at random"""
BUDGETS = (5, 10, 50)
SEEDS = 3
FOLDER = BUILD / "embeddings"
_HEAD = """## What it is worth

Made by `python -m benchmarks.embeddings` on:
{machine}.

Share of the unlabeled documents of a pool that get a wrong label: means over {seeds} draws of labels, as many of each
class. Pools are random samples of 1,500 or 1,800 documents; classes of which a pool has few have at most half of them
labeled. Vectors are those of the encoder at hand.

| column | what it is |
| --- | --- |
| LR on vectors | logistic regression (scikit-learn), its `C` by cross-validation |
| LR on both | the same on vectors beside TF-IDF |
| `auto` on text, on vectors | the service, on one part alone |
| `auto` on both | the service, on documents of both parts |

"""
Matrix = Any


class Pool(NamedTuple):
    """A sample of a set of texts."""

    texts: list[str]
    class_indices: NDArray[np.int64]
    vectors: NDArray[np.float32]
    """shape (n_documents, 384), of length 1"""


class Task(NamedTuple):
    """A pool with some labeled documents."""

    name: str
    labeled: NDArray[np.int64]
    """ascending"""
    seed: int

    @property
    def known(self) -> NDArray[np.int32]:
        """shape (n_documents,): class indices, -1 where unlabeled."""
        return class_indices_of(pool(self.name).class_indices, self.labeled)[0]


@cache
def pool(name: str) -> Pool:
    """The pool of a set; its vectors are computed once."""
    documents, labels = texts(name)
    chosen = np.sort(np.random.default_rng(0).permutation(len(documents))[: POOLS[name]])
    found = [documents[place] for place in chosen]
    vectors = encoded(found, FOLDER / f"{name}-{AT_HAND}.npy")
    return Pool(found, np.unique(labels[chosen], return_inverse=True)[1], vectors)


def encoded(documents: list[str], file: Path) -> NDArray[np.float32]:
    """Vectors of the encoder at hand, shape (n_documents, 384), of length 1; they are kept in ``file``."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        encoders = Encoders.of(Settings(encoder=AT_HAND), threads=2)
        vectors = encoders.load(encoders.id(AT_HAND)).encode(documents)
        np.save(file, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return np.asarray(np.load(file))


def drawn(name: str, n: int, seed: int) -> Task:
    """A task with ``n`` labels of each class, or labels of half of its documents."""
    rng, class_indices = np.random.default_rng(1000 + seed), pool(name).class_indices
    orders = [rng.permutation(np.flatnonzero(class_indices == each)) for each in range(class_indices.max() + 1)]
    return Task(name, np.sort(np.concatenate([order[: min(n, len(order) // 2)] for order in orders])), seed)


@cache
def documents_of(name: str) -> tuple[SparseRows, Mapping[str, slice]]:
    """The rows of a pool as the service makes them of documents with both parts, and the columns of each part."""
    found = pool(name)
    text, dense = TextRows.of(found.texts), rows_of(sp.csr_matrix(found.vectors))
    terms = fit_terms(text, TextOptions(), lambda done, held: None)
    columns = PartColumns(
        [Block("text", terms, len(terms.keys)), Block(DENSE, NUMBERS, dense.n_features, centre_of(dense))]
    )
    return columns.read(PartRows({"text": text, DENSE: dense})).rows, columns.ranges


def terms_of(name: str) -> Matrix:
    """The rows of the texts alone, as SciPy has them."""
    rows, ranges = documents_of(name)
    return sp.csr_matrix((rows.values, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))[
        :, ranges["text"]
    ]


def logistic_regression(X: Matrix, task: Task) -> NDArray[Any]:
    """Tuned by two or three folds of the labels."""
    labels = task.known[task.labeled]
    folds = max(2, min(3, int(np.bincount(labels).min())))
    model = LogisticRegressionCV(
        Cs=np.logspace(-1, 3, 9), cv=folds, max_iter=2000, l1_ratios=(0,), use_legacy_attributes=False
    )
    return np.asarray(model.fit(X[task.labeled], labels).predict(X))


def auto(rows: SparseRows, known: NDArray[Any], seed: int, parts: Mapping[str, slice]) -> NDArray[Any]:
    """The labels that are ``known``, shape (n_documents,), and those that ``auto`` gives by its defaults."""
    answer = known.copy()
    classes = list(range(int(answer.max()) + 1))
    training = train(TrainingTask(rows, known, classes, "auto", {}, seed=seed, parts=parts), TrainingContext(threads=1))
    answer[training.unlabeled] = training.model.labels_of(training.scores, training.probabilities)
    return answer


METHODS: Mapping[str, Callable[[Task], NDArray[Any]]] = {
    "LR on vectors": lambda task: logistic_regression(sp.csr_matrix(pool(task.name).vectors), task),
    "LR on both": lambda task: logistic_regression(
        sp.hstack([terms_of(task.name), sp.csr_matrix(pool(task.name).vectors)]).tocsr(), task
    ),
    "auto on text": lambda task: auto(rows_of(terms_of(task.name)), task.known, task.seed, {}),
    "auto on vectors": lambda task: auto(rows_of(sp.csr_matrix(pool(task.name).vectors)), task.known, task.seed, {}),
    "auto on both": lambda task: auto(documents_of(task.name)[0], task.known, task.seed, documents_of(task.name)[1]),
}


def error(name: str, n: int, seed: int, method: str) -> float:
    """Share of the unlabeled documents that the method gets wrong."""
    task = drawn(name, n, seed)
    hidden = task.known < 0
    return float(np.mean(METHODS[method](task)[hidden] != pool(name).class_indices[hidden]))


def kept(name: str, n: int, seed: int, method: str) -> float:
    basis = code_digest("core", "benchmarks/embeddings.py")
    return float(
        Results(folder=FOLDER).get(
            f"{name}/{n}/{seed}/{method}", basis, lambda: {"error": error(name, n, seed, method)}
        )["error"]
    )


def page(names: list[str], budgets: list[int], seeds: int) -> str:
    errors = {
        (name, n, method): float(np.mean([kept(name, n, seed, method) for seed in range(seeds)]))
        for name in names
        for n in budgets
        for method in METHODS
    }
    heads = [
        "labels a class",
        *(f"`{method[:4]}`{method[4:]}" if method.startswith("auto") else method for method in METHODS),
    ]
    means = [
        [str(n), *(f"{np.mean([errors[name, n, method] for name in names]):.3f}" for method in METHODS)]
        for n in budgets
    ]
    lines = [
        [name, str(n), *(f"{errors[name, n, method]:.3f}" for method in METHODS)] for name in names for n in budgets
    ]
    tables = (
        f"Means over the {len(names)} sets:\n\n{table(heads, means)}\nEach set:\n\n{table(['texts', *heads], lines)}\n"
    )
    left_out = [name for name in POOLS if name not in names]
    note = (
        f"Not measured in this run, which takes long with many classes: {', '.join(left_out)}.\n\n" if left_out else ""
    )
    return note + tables + _verdict(errors, names, budgets)


def _verdict(errors: Mapping[tuple[str, int, str], float], names: list[str], budgets: list[int]) -> str:
    cases = [(name, n) for name in names for n in budgets]
    gains = {
        rival: np.mean([errors[name, n, rival] - errors[name, n, "auto on both"] for name, n in cases])
        for rival in ("LR on vectors", "LR on both")
    }
    lines = [
        f"`auto` on both is wrong less often than logistic regression by {gains['LR on vectors']:.3f} in the "
        "mean on vectors, and by "
        f"{gains['LR on both']:.3f} on both.",
        *(
            f"{text} it is worse by more than .01 on {_losses(errors, cases, rivals)}."
            for text, rivals in (
                (
                    "Against the better of text and vectors alone, which nobody knows beforehand,",
                    ("auto on text", "auto on vectors"),
                ),
                ("Against the better of the two logistic regressions", ("LR on vectors", "LR on both")),
            )
        ),
    ]
    return "".join(
        fill(line, 120, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False) + "\n" for line in lines
    )


def _losses(errors: Mapping[tuple[str, int, str], float], cases: list[tuple[str, int]], rivals: tuple[str, ...]) -> str:
    """The cases on which the best rival is right more often, in words."""
    worse = {
        (name, n): errors[name, n, "auto on both"] - min(errors[name, n, rival] for rival in rivals)
        for name, n in cases
    }
    return (
        ", ".join(f"{name} with {n} (by {loss:.3f})" for (name, n), loss in worse.items() if loss > 0.01)
        or "none of these"
    )


def main(arguments: list[str]) -> None:
    labels = ",".join(map(str, BUDGETS))
    given = options(__doc__, arguments, sets=",".join(POOLS), labels=labels, seeds=SEEDS, dry=False)
    found = page(given.sets.split(","), list(map(int, given.labels.split(","))), given.seeds)
    text = _HEAD.replace("{machine}", machine()).replace("{seeds}", str(given.seeds)) + found
    print(text) if given.dry else put_section("embeddings.md", text)


if __name__ == "__main__":
    main(sys.argv[1:])
