"""The figure of the README: errors with 20 and 100 labels, beside the usual alternatives: ``python -m benchmarks.why``
writes ``docs/why.md``.

The embeddings are those of the encoder at hand. Vectors that were computed before are kept in ``build/``.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

from benchmarks.base import class_indices_of, machine, options, table, write
from benchmarks.data import BUILD, texts
from benchmarks.embeddings import auto, encoded
from tests.core.problems import rows_of
from workers.encoders.catalogue import AT_HAND

SETS = {
    "sms-spam": "messages, spam or not",
    "reuters-r8": "news, eight topics",
    "mr-sentences": "sentences of reviews, for or against",
}
LABELS = (20, 100)
_HEAD = """# Why: errors with 20 and 100 labels

Made by `python -m benchmarks.why --seeds {seeds}` on:
{machine}.

Share of the unlabeled documents that get a wrong label.
Figures are means and, in brackets, standard deviations over {seeds} draws of labels.
The labels are a random sample, with at least one of each class. Every method has the same labels and its
defaults; nothing is tuned by hand.

| column | what it is |
| --- | --- |
| supervised | `LinearSVC` on TF-IDF of words and pairs of words (scikit-learn) |
| self-training | `SelfTrainingClassifier` around `LogisticRegression` on the same TF-IDF (scikit-learn) |
| embeddings | `LinearSVC` on vectors of multilingual-e5-small, the encoder at hand |
| Halfmoon on text | `auto` with `"encoder": null` |
| Halfmoon on embeddings | `auto` on the vectors alone, sent as dense documents |
| Halfmoon | `auto` as it comes: the text and its vector |
"""

Matrix = Any
Answer = Callable[["Task"], NDArray[Any]]


class Task(NamedTuple):
    """A set of texts, some of them labeled."""

    name: str
    class_indices: NDArray[np.int32]
    """shape (n_documents,): the true classes"""
    labeled: NDArray[np.int64]
    """ascending"""
    seed: int

    @property
    def known(self) -> NDArray[np.int32]:
        """shape (n_documents,): class indices, -1 where unlabeled."""
        return class_indices_of(self.class_indices, self.labeled)[0]


@cache
def terms(name: str) -> sp.csr_matrix:
    """TF-IDF of words and pairs of words, the weights that the service gives text."""
    return sp.csr_matrix(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, dtype=np.float32).fit_transform(texts(name)[0])
    )


@cache
def embeddings(name: str) -> NDArray[np.float32]:
    """shape (n_documents, 384), of length 1."""
    return encoded(texts(name)[0], BUILD / "why" / f"{name}-{AT_HAND}.npy")


def drawn(class_indices: NDArray[np.int32], n: int, seed: int) -> NDArray[np.int64]:
    """Positions of ``n`` random documents, among them at least one of each class, ascending."""
    order = np.random.default_rng(seed).permutation(len(class_indices))
    firsts = np.array([order[class_indices[order] == code][0] for code in range(int(class_indices.max()) + 1)])
    return np.sort(np.concatenate([firsts, order[~np.isin(order, firsts)][: n - len(firsts)]]))


def supervised(X: Matrix, task: Task) -> NDArray[Any]:
    """The linear SVM of scikit-learn by its defaults, on the labeled documents."""
    return np.asarray(LinearSVC().fit(X[task.labeled], task.class_indices[task.labeled]).predict(X))


def self_training(X: Matrix, task: Task) -> NDArray[Any]:
    return np.asarray(SelfTrainingClassifier(LogisticRegression(max_iter=1000)).fit(X, task.known).predict(X))


def auto_on(parts: Mapping[str, Matrix], task: Task) -> NDArray[Any]:
    """``auto`` by its defaults, on documents of some ``parts``."""
    matrices = [sp.csr_matrix(part) for part in parts.values()]
    ends = np.cumsum([0, *(matrix.shape[1] for matrix in matrices)]).tolist()
    columns = {name: slice(*each) for name, each in zip(parts, pairwise(ends), strict=True)} if len(parts) > 1 else {}
    return auto(rows_of(sp.hstack(matrices).tocsr()), task.known, task.seed, columns)


METHODS: Mapping[str, Callable[[Task], NDArray[Any]]] = {
    "supervised": lambda task: supervised(terms(task.name), task),
    "self-training": lambda task: self_training(terms(task.name), task),
    "embeddings": lambda task: supervised(embeddings(task.name), task),
    "Halfmoon on text": lambda task: auto_on({"text": terms(task.name)}, task),
    "Halfmoon on embeddings": lambda task: auto_on({"vector": embeddings(task.name)}, task),
    "Halfmoon": lambda task: auto_on({"text": terms(task.name), "vector": embeddings(task.name)}, task),
}


def errors(task: Task) -> dict[str, float]:
    """On the unlabeled documents."""
    hidden = np.delete(np.arange(len(task.class_indices)), task.labeled)
    answers = {method: answer(task) for method, answer in METHODS.items()}
    return {method: float(np.mean(labels[hidden] != task.class_indices[hidden])) for method, labels in answers.items()}


def line(name: str, n: int, found: list[dict[str, float]]) -> list[str]:
    """A row of the table."""
    values = [[each[method] for each in found] for method in METHODS]
    return [f"{name} ({SETS[name]})", str(n), *(f"{np.mean(each):.3f} ({np.std(each):.3f})" for each in values)]


def main(arguments: list[str]) -> None:
    given = options(__doc__, arguments, sets=",".join(SETS), seeds=5, dry=False)
    lines = []
    for name in given.sets.split(","):
        class_indices = np.unique(texts(name)[1], return_inverse=True)[1].astype(np.int32)
        for n in LABELS:
            found = []
            for seed in range(given.seeds):
                found.append(errors(Task(name, class_indices, drawn(class_indices, n, seed), seed)))
                print(
                    name,
                    n,
                    seed,
                    {method: round(value, 3) for method, value in found[-1].items()},
                    file=sys.stderr,
                    flush=True,
                )
            lines.append(line(name, n, found))
    text = f"{_HEAD.format(machine=machine(), seeds=given.seeds)}\n{table(['texts', 'labels', *METHODS], lines)}"
    print(text) if given.dry else write("why.md", text)


if __name__ == "__main__":
    main(sys.argv[1:])
