"""C and gamma by default: chosen by the data, beside the fixed values of before and scikit-learn's search on the same labels."""

import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from benchmarks.base import machine, rows_of, table
from benchmarks.panel import draws
from benchmarks.panel.sets import documents
from core.documents.rows import SparseRows
from core.train import Training, TrainingTask, train

SETS = ("pcmac, 300", "pcmac", "ssl-text", "g50c", "ssl-usps", "ssl-digit1", "keel-wdbc", "keel-heart")
LABELS, SEEDS, MOST = (20, 50), range(3), 300
FIXED = {"C": 1.0, "gamma": "scale"}
_WEIGHTS, _GAMMAS = np.logspace(-2, 3, 6), np.logspace(-2, 1, 4)
_METHODS = {"kernel_svm": "rbf", "ramp_svm": "rbf", "cccp_tsvm": "rbf", "ctsvm": "rbf", "kernel_svm, linear": "linear"}


class Task(NamedTuple):
    """Documents of two classes, and those that are labeled."""

    X: NDArray[np.float32]
    y: NDArray[np.int32]
    labeled: NDArray[np.int64]

    @property
    def rows(self) -> SparseRows:
        return rows_of(self.X)

    @property
    def known(self) -> NDArray[np.int32]:
        return np.where(np.isin(np.arange(len(self.y)), self.labeled), self.y, -1).astype(np.int32)

    def of(self, most: int, seed: int) -> "Task":
        """With at most so many documents, the labeled ones among them."""
        others = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(self.y)), self.labeled))
        kept = np.sort(np.concatenate([self.labeled, others[: most - len(self.labeled)]]))
        return Task(self.X[kept], self.y[kept], np.flatnonzero(np.isin(kept, self.labeled)))


def tasks(name: str, n_labels: int) -> Iterator[tuple[int, Task]]:
    found = documents(name.split(",")[0])
    for seed in SEEDS:
        y, X = found.class_indices, found.X.toarray().astype(np.float32)
        if name.endswith(", 300"):
            chosen = np.sort(np.random.default_rng(seed).permutation(len(y))[:MOST])
            X, y = X[chosen], y[chosen]
        yield seed, Task(X, y, np.sort(draws.random(y, n_labels, seed).positions))


class Measured(NamedTuple):
    """What one method does on one set, for a number of labels."""

    errors: NDArray[np.float64]
    """mean errors with fixed and with chosen values, and by scikit-learn's search"""
    seconds: tuple[float, float]
    """of the first draw, with fixed and with chosen values"""


def defaults() -> str:
    """Mean errors over draws of random labels, and how many times as long the choice makes a training."""
    found = {(name, n_labels): measured(name, n_labels) for name in SETS for n_labels in LABELS}
    lines = [[f"{name}, {n_labels} labels", *(_told(several[method].errors) for method in _METHODS)] for (name, n_labels), several in found.items()]
    means = {method: np.mean([several[method].errors for several in found.values()], axis=0) for method in _METHODS}
    lines.append(["**mean**", *(f"**{_told(means[method])}**" for method in _METHODS)])
    lines.append(["times as long as with C = 1", *(_ratio([several[method].seconds for several in found.values()]) for method in _METHODS)])
    return (
        f"Mean errors of {len(SEEDS)} draws of random labels, three in each place: with `C` = 1 and `gamma` = `scale`, the defaults until 0.1.0; "
        "with what the data choose; of scikit-learn's SVC with GridSearchCV over C and gamma on the same labels, which is supervised.\n"
        f"`ctsvm` has at most {MOST} documents of each set. The last row compares seconds of trainings without the estimate of class fractions, "
        f"on {machine()}.\n\n" + table(["set", *(f"`{method}`" for method in _METHODS)], lines)
    )


def measured(name: str, n_labels: int) -> dict[str, Measured]:
    """The figures of all methods on a set."""
    errors: dict[str, list[list[float]]] = defaultdict(list)
    seconds = {}
    for seed, task in tasks(name, n_labels):
        for method in _METHODS:
            own = task.of(MOST, seed) if method == "ctsvm" else task
            algorithm, kernel = method.split(",")[0], {"kernel": _METHODS[method]}
            chosen, _ = _fit(algorithm, own, kernel)
            fractions = (chosen.report or {}).get("class_fractions")
            given = {**kernel, **({} if fractions is None else {"class_fractions": fractions})}
            fixed, fixed_seconds = _fit(algorithm, own, {**given, **FIXED})
            if seed == SEEDS[0]:
                seconds[method] = fixed_seconds, _fit(algorithm, own, given)[1]
            errors[method].append([_error(fixed, own), _error(chosen, own), _searched(own, kernel["kernel"])])
    return {method: Measured(np.mean(errors[method], axis=0), seconds[method]) for method in _METHODS}


def _fit(algorithm: str, task: Task, options: dict[str, Any]) -> tuple[Training, float]:
    rows, start = task.rows, time.perf_counter()
    training = train(TrainingTask(rows, task.known, ["0", "1"], algorithm, options))
    return training, time.perf_counter() - start


def _error(training: Training, task: Task) -> float:
    return float(np.mean(training.model.labels_of(training.scores) != task.y[training.unlabeled]))


def _searched(task: Task, kernel: str) -> float:
    """GridSearchCV over SVC, in five folds or as many as the rarer class has labels; of a linear kernel C in units of 1 / mean |x|²."""
    X, y = task.X[task.labeled].astype(np.float64), task.y[task.labeled]
    others = np.setdiff1d(np.arange(len(task.y)), task.labeled)
    scale = 1.0 / (X.shape[1] * X.var()) if kernel == "rbf" else 1.0 / (X**2).sum(axis=1).mean()
    grid = {"C": _WEIGHTS, "gamma": scale * _GAMMAS} if kernel == "rbf" else {"C": scale * _WEIGHTS}
    folds = min(5, int(np.bincount(y, minlength=2).min()))
    if folds < 2:
        return float(np.mean(SVC(kernel=kernel).fit(X, y).predict(task.X[others]) != task.y[others]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a bound on iterations, which only values far too large for raw features reach
        search = GridSearchCV(SVC(kernel=kernel, max_iter=1_000_000), grid, cv=StratifiedKFold(folds, shuffle=True, random_state=0)).fit(X, y)
    return float(np.mean(search.predict(task.X[others].astype(np.float64)) != task.y[others]))


def _told(errors: Any) -> str:
    return " / ".join(f"{error:.3f}".removeprefix("0") for error in errors)


def _ratio(seconds: list[tuple[float, float]]) -> str:
    fixed, chosen = np.sum(seconds, axis=0)
    return f"{chosen / fixed:.1f} ({1000 * (chosen - fixed) / len(seconds):.0f} ms more)"
