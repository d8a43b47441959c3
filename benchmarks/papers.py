"""The sets of the papers and a table of runs on them: ``python -m benchmarks.papers [paper …]`` writes
``docs/papers.md``.

A run trains one method on every draw of labels of a set. Its error is the mean share of wrong labels among the rows
without one: of a set with a test part these are the test rows.
"""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import class_indices_of, commit, machine, put_section, table
from benchmarks.data import load, tfidf
from core.documents.rows import SparseRows
from core.problem import Status
from core.train import Training, TrainingTask, train
from tests.core.problems import rows_of

BANANA_NOISE = 0.31
LABEL_NOISE = 0.1
_TRIALS = 10
_TITLES = {
    "collobert": "Collobert, Sinz, Weston & Bottou 2006: Trading convexity for scalability",
    "universvm": "UniverSVM: 100 labels",
}
_TWO = 2


class Draw(NamedTuple):
    """Documents, some of them labeled; the error is measured on the rest."""

    rows: SparseRows
    y: NDArray[Any]
    labeled: NDArray[np.int64]

    @property
    def unlabeled(self) -> NDArray[np.int64]:
        """Positions of the rows without a label."""
        return np.setdiff1d(np.arange(len(self.y)), self.labeled)


def official(name: str, labeled: str = "labeled", count: int | None = None) -> list[Draw]:
    """The first draws that a set comes with, by default all."""
    data = load(name)
    rows = rows_of(data.X)
    return [Draw(rows, data.y, drawn.astype(np.int64)) for drawn in data.splits[labeled][:count]]


def evenly(X: Any, y: NDArray[Any], count: int, n_draws: int = 10) -> list[Draw]:
    """Draws by seed of ``count`` labels of each class."""
    rows, found = rows_of(X), []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        own = [rng.choice(np.flatnonzero(y == label), count, replace=False) for label in np.unique(y)]
        found.append(Draw(rows, y, np.sort(np.concatenate(own))))
    return found


def drawn_evenly(name: str, count: int, part: str | None = None) -> list[Draw]:
    """Ten such draws of a set, or of a part of it."""
    data = load(name)
    chosen = slice(None) if part is None else data.splits[part]
    return evenly(data.X[chosen], data.y[chosen], count)


def waveform(seed: int) -> Draw:
    """Class 0 against the others: 4,000 rows to train on, 1,000 to test on."""
    data = load("waveform-generated")
    order = np.random.default_rng(seed).permutation(len(data.y))
    return Draw(rows_of(data.X), np.where(data.y == 0, 1, -1), np.sort(order[:4000]))


def banana(seed: int) -> Draw:
    """Two half circles (cos t, sin t) and (1 - cos t, 1/2 - sin t), t uniform in [0, π], with normal noise: 4,000 rows
    to train on, 1,300 to test on.
    """
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(5300) < 0.5, 1, -1)
    t = rng.uniform(0, np.pi, len(y))
    arcs = y[:, None] * np.column_stack([np.cos(t), np.sin(t)]) + (y < 0)[:, None] * [1.0, 0.5]
    return Draw(rows_of(arcs + BANANA_NOISE * rng.standard_normal((len(y), 2))), y, np.arange(4000))


def usps_noise(seed: int) -> Draw:
    """Zero against the other digits on the official split, a tenth of the training labels turned round."""
    data = load("usps")
    train_rows, y = data.splits["train"], np.where(data.y == 0, 1, -1)
    turned = np.random.default_rng(seed).choice(train_rows, round(LABEL_NOISE * len(train_rows)), replace=False)
    y[turned] *= -1
    return Draw(rows_of(data.X), y, np.sort(train_rows).astype(np.int64))


def adult() -> list[Draw]:
    """The official split."""
    data = load("adult-a9a")
    return [Draw(rows_of(data.X), data.y, np.sort(data.splits["train"]).astype(np.int64))]


def digits() -> list[Draw]:
    """All 10,000 images, 1,000 drawn at random labeled."""
    data = load("mnist-t10k")
    labeled = np.sort(np.random.default_rng(0).choice(len(data.y), 1000, replace=False))
    return [Draw(rows_of(data.X), data.y, labeled)]


def balanced(X: Any, y: NDArray[Any], n: int, n_labeled: int) -> list[Draw]:
    """Ten draws of ``n`` documents with ``n_labeled`` labels, as many of either class (Table 2 of CTSVM)."""
    found = []
    for seed in range(_TRIALS):
        rng = np.random.default_rng(seed)
        halves = [rng.choice(np.flatnonzero(y == label), n // 2, replace=False) for label in (-1, 1)]
        labeled = np.concatenate([half[: n_labeled // 2] for half in halves])
        rest = np.concatenate([half[n_labeled // 2 :] for half in halves])
        chosen = np.concatenate([labeled, rng.permutation(rest)])
        found.append(Draw(rows_of(X[chosen]), y[chosen], np.arange(n_labeled)))
    return found


def breast() -> list[Draw]:
    """Breast cancer, standardized: 300 documents, 20 labels."""
    data = load("keel-wdbc")
    dense = data.X.toarray()
    return balanced((dense - dense.mean(axis=0)) / dense.std(axis=0), np.where(data.y == data.y.max(), 1, -1), 300, 20)


def windows_mac(n: int, n_labeled: int) -> list[Draw]:
    """Windows against Mac, as many of either."""
    X, groups = tfidf("20news-bydate")
    mac = groups == "comp.sys.mac.hardware"
    both = mac | (groups == "comp.os.ms-windows.misc")
    return balanced(X[both], np.where(mac[both], 1, -1), n, n_labeled)


SETS: dict[str, Callable[[], list[Draw]]] = {
    "g50c": lambda: official("g50c"),
    "pcmac": lambda: official("pcmac"),
    "coil20": lambda: drawn_evenly("coil20", 2),
    "ssl-g241c": lambda: official("ssl-g241c", "labeled100", 3),
    "ssl-usps": lambda: official("ssl-usps", "labeled100", 3),
    "ssl-digit1": lambda: official("ssl-digit1", "labeled100", 3),
    "Waveform": lambda: [waveform(seed) for seed in range(10)],
    "Banana": lambda: [banana(seed) for seed in range(10)],
    "USPS+N": lambda: [usps_noise(seed) for seed in range(10)],
    "Adult": adult,
    "mnist-t10k": digits,
}


class Run(NamedTuple):
    """A method with its options on one set, and the error in % that the paper prints."""

    paper: str
    set: str
    algorithm: str
    options: dict[str, Any]
    printed: str
    fractions: bool = False
    """Whether the true class fractions of the unlabeled rows are given."""
    sums: bool = False
    """Whether C weighs each row, with a label or without, where the algorithm has λ for the mean loss."""


def _collobert() -> Iterator[Run]:
    for name, printed, options in (
        ("g50c", "8.32", {"C": 10.0, "gamma": 0.00047887}),
        ("pcmac", "18.86", {"C": 30.0, "gamma": 0.02516566}),
        ("coil20", "24.64", {"C": 1.0, "gamma": 0.01593966}),
        ("Waveform", "8.8", {"C": 1.0, "gamma": 0.00144024}),
        ("Banana", "9.5", {"C": 1.0, "gamma": 0.62867438}),
        ("USPS+N", "0.5", {"C": 1.0, "gamma": 0.00416945}),
        ("Adult", "15.1", {"C": 10.0, "gamma": 0.0078125}),
        ("mnist-t10k", "7.77", {"C": 10.0, "gamma": 0.0128}),
    ):
        yield Run("collobert", name, "kernel_svm", options, printed)
    for name, printed, options in (
        ("Waveform", "8.8", {"C": 10.0, "gamma": 0.01152194, "s": 0.0}),
        ("Banana", "9.5", {"C": 1.0, "gamma": 0.62867438, "s": -1.0}),
        ("USPS+N", "0.5", {"C": 10.0, "gamma": 0.00208473, "s": 0.0}),
        ("Adult", "15.0", {"C": 10.0, "gamma": 0.015625, "s": -1.0}),
    ):
        yield Run("collobert", name, "ramp_svm", options, printed)
    for name, printed, options in (
        ("g50c", "5.62", {"C": 3.0, "gamma": 0.00119717, "s": 0.0}),
        ("g50c", "5.04", {"C": 3.0, "gamma": 0.00119717, "s": -0.1}),
        ("pcmac", "7.97", {"C": 100.0, "gamma": 0.02516566, "s": 0.0}),
        ("pcmac", "5.59", {"C": 100.0, "gamma": 0.05033132, "s": -0.3}),
        ("coil20", "16.69", {"C": 10.0, "gamma": 0.01593966, "s": 0.0}),
        ("coil20", "16.06", {"C": 10.0, "gamma": 0.03187932, "s": -0.1}),
        ("mnist-t10k", "5.65", {"C": 10.0, "gamma": 0.0128, "s": -0.1, "C_u": 0.5}),
    ):
        yield Run("collobert", name, "cccp_tsvm", options, printed)


def _universvm() -> Iterator[Run]:
    for name, printed, s, C_u in (
        ("ssl-g241c", "17.9", 0.0, 0.4),
        ("ssl-g241c", "16.8", -0.2, 0.7),
        ("ssl-usps", "7.4", 0.0, 2.0),
        ("ssl-usps", "8.7", -0.2, 2.0),
        ("ssl-digit1", "6.0", 0.0, 1.0),
        ("ssl-digit1", "5.7", -0.2, 1.0),
    ):
        options = {"C": 10.0, "gamma": "median", "s": s}
        yield Run("universvm", name, "cccp_tsvm", options, printed)
        yield Run("universvm", name, "cccp_tsvm", {**options, "C_u": C_u}, printed, fractions=True)


RUNS: dict[str, Callable[[], Iterator[Run]]] = {
    "collobert": _collobert,
    "universvm": _universvm,
}


@cache
def draws_of(name: str) -> list[Draw]:
    """The draws of a set, made once."""
    return SETS[name]()


def trained(run: Run, draw: Draw) -> tuple[Training, float]:
    """One training of a run, and its error."""
    options = dict(run.options)
    class_indices, classes = class_indices_of(draw.y, draw.labeled)
    if run.fractions:
        hidden = draw.y[draw.unlabeled]
        shares = {str(label): float(np.mean(hidden == label)) for label in classes}
        given = {"positive_fraction": shares[str(classes[1])]} if len(classes) == _TWO else {"class_fractions": shares}
        options |= given
    if run.sums:
        n_labeled = len(draw.labeled)
        options |= {"lambda": 1 / (2 * options.pop("C") * n_labeled), "lambda_u": len(draw.unlabeled) / n_labeled}
    names = [str(label) for label in classes]
    training = train(TrainingTask(draw.rows, class_indices, names, run.algorithm, options))
    expected = draw.y[training.unlabeled].astype(str)
    return training, float(np.mean(np.array(names)[training.model.labels_of(training.scores)] != expected))


def row(run: Run) -> list[str]:
    """The line of a run in its table."""
    found = [trained(run, draw) for draw in draws_of(run.set)]
    error = 100 * np.mean([each[1] for each in found])
    converged = sum(training.status is Status.CONVERGED for training, _ in found)
    given = [f"{name} = {value}" for name, value in run.options.items()]
    if run.fractions:
        given.append("true fractions")
    line = [
        run.set,
        f"`{run.algorithm}`",
        ", ".join(given),
        f"{error:.2f}",
        run.printed,
        f"{converged} of {len(found)}",
    ]
    print(*line, sep=" | ", file=sys.stderr, flush=True)
    return line


def main(papers: list[str]) -> None:
    """Measure the runs of the papers, by default of all, and put their sections into the page."""
    heads = ["set", "method", "options", "mean error, %", "printed, %", "converged"]
    for paper in papers or RUNS:
        lines = [row(run) for run in RUNS[paper]()]
        when = f"Measured on {datetime.now(UTC):%Y-%m-%d} at {commit()}, on {machine()}."
        put_section("papers.md", f"## {_TITLES[paper]}\n\n{when}\n\n{table(heads, lines)}")


if __name__ == "__main__":
    main(sys.argv[1:])
