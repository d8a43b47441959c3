"""Holds the linear family to the reference figures: ``python -m benchmarks.figures`` prints the table and writes
``docs/figures.md``.

Errors are fractions; J is the objective that core.losses.squared_hinge defines; fractions of positive documents are the
true ones, as in the reference runs, unless said otherwise.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import class_indices_of, machine, table, write
from benchmarks.data import DataSet, load, text_like
from core.documents.rows import SparseRows
from core.train import Training, TrainingTask, train
from tests.core.problems import rows_of

_NAMES = {"svm": "supervised", "tsvm": "TSVM, S = all", "da": "annealing"}
_TRUE_FRACTION = 0.3494


def _train(rows: SparseRows, y: NDArray[Any], labeled: NDArray[np.int64], algorithm: str, fraction: float) -> Training:
    class_indices, classes = class_indices_of(y, labeled)
    return train(
        TrainingTask(
            rows, class_indices, classes, algorithm, {} if algorithm == "svm" else {"positive_fraction": fraction}
        )
    )


def _error(training: Training, rows: SparseRows, y: NDArray[Any]) -> float:
    model = training.model
    return float(np.mean(np.array(model.classes)[model.labels_of(model.scores(rows))] != y))


def _row(what: str, algorithm: str, quantity: str, value: float, bound: float | None, reference: str) -> list[str]:
    verdict = ["", ""] if bound is None else [f"≤ {bound:g}", "reached" if value <= bound else "MISSED"]
    return [what, _NAMES[algorithm], quantity, f"{value:.6f}", *verdict, reference]


def text_like_figures() -> Iterator[list[str]]:
    """The default synthetic set: 100,000 rows, all (supervised) or 1,000 of them labeled."""
    data = text_like()
    rows, test = rows_of(data.X), rows_of(data.X_test)
    everything, first = np.arange(len(data.y)), np.arange(1000)
    supervised = _train(rows, data.y, everything, "svm", 0)
    yield _row("text-like, all labeled", "svm", "F", supervised.objective, 0.29538, "SVMlin .29536967")
    for algorithm, bound, objective, error in (("tsvm", 0.385, ".384976", ".0859"), ("da", 0.3829, ".382816", ".0988")):
        training = _train(rows, data.y, first, algorithm, _TRUE_FRACTION)
        yield _row("text-like, 1,000 labeled", algorithm, "J", training.objective, bound, f"SVMlin {objective}")
        yield _row("", algorithm, "test error", _error(training, test, data.y_test), None, f"SVMlin {error}")


def svmlin_example_figures() -> Iterator[list[str]]:
    """The example that SVMlin ships: 50 labels, 486 test documents."""
    X, y, splits = load("svmlin-example")
    rows, test = rows_of(X[splits["train"]]), rows_of(X[splits["test"]])
    labeled = np.flatnonzero(np.isin(splits["train"], splits["train_labeled"]))
    bounds: dict[str, tuple[float | None, float | None, str]] = {
        "svm": (None, None, ".333"),
        "tsvm": (0.075, 0.134, ".0720, .133878"),
        "da": (0.062, 0.124, ".0597, .123867"),
    }
    for algorithm, (error, objective, reference) in bounds.items():
        training = _train(rows, y[splits["train"]], labeled, algorithm, 0.5)
        yield _row(
            "svmlin-example",
            algorithm,
            "test error",
            _error(training, test, y[splits["test"]]),
            error,
            f"SVMlin {reference}",
        )
        if algorithm != "svm":
            yield _row("", algorithm, "J", training.objective, objective, "")


def ssl_text_figures(n_labels: int) -> Iterator[list[str]]:
    """Text of the SSL book: transductive error, mean of the 12 official splits."""
    data = load("ssl-text")
    none: dict[str, float | None] = dict.fromkeys(_NAMES)
    bounds = {100: none | {"tsvm": 0.228, "da": 0.225}, 10: none}[n_labels]
    references = {
        100: {"svm": ".2547", "tsvm": ".2262", "da": ".2223"},
        10: {"svm": ".448", "tsvm": ".2775", "da": ".2841"},
    }[n_labels]
    for algorithm, bound in bounds.items():
        yield _row(
            f"ssl-text, {n_labels} labels",
            algorithm,
            "error",
            _mean_split_error(data, n_labels, algorithm),
            bound,
            f"SVMlin {references[algorithm]}",
        )


def _mean_split_error(data: DataSet, n_labels: int, algorithm: str) -> float:
    rows, errors = rows_of(data.X), []
    for labeled in data.splits[f"labeled{n_labels}"]:
        training = _train(rows, data.y, labeled, algorithm, 0.5)
        predicted = np.array(training.model.classes)[training.model.labels_of(training.scores)]
        errors.append(np.mean(predicted != data.y[training.unlabeled]))
    return float(np.mean(errors))


def main() -> None:
    """Measure, print, write."""
    rows = [*text_like_figures(), *svmlin_example_figures(), *ssl_text_figures(100), *ssl_text_figures(10)]
    heads = ["set", "method", "quantity", "Halfmoon", "to reach", "", "reference"]
    write(
        "figures.md",
        "# The linear family against the reference figures\n\n"
        "λ = 0.001, λ' = 1, one run each (the solvers are deterministic).\n"
        f"Fractions of positive documents are those of the reference runs (the true ones: {_TRUE_FRACTION} and 0.5).\n"
        f"Made by `python -m benchmarks.figures` on:\n{machine()}.\n\n"
        f"{table(heads, rows)}",
    )


if __name__ == "__main__":
    main()
