"""The convex relaxation: its time beside a general solver's, and Table 2 of its paper on like data.

``python -m benchmarks.ctsvm`` writes ``docs/ctsvm-figures.md`` and its plot; with ``speed``, ``general`` or ``accuracy`` it makes these parts of the
page anew and keeps the others.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import machine, number, renewed, rows_of, table, timed, write
from benchmarks.data import load, tfidf
from core.options.relaxation import CtsvmOptions
from core.problem.result import Status
from core.progress import TracePoint
from core.train import Training, TrainingContext, TrainingTask, train
from tests.reference.relaxation import Given, dual_value

_DOCS = Path(__file__).parent.parent / "docs"
_PAGE = "ctsvm-figures.md"
_TITLES = ("Time", "Beside a general solver", "Table 2 on like data")
_BOUNDS = {300: 2.0, 1000: 20.0, 2000: 150.0}
_PATIENCE = 2
_LARGEST_GENERAL = 100
_TRIALS = 10
_CS = (0.1, 1.0, 10.0, 100.0)
_METHODS = ("svm", "kernel_svm", "tsvm", "da", "cccp_tsvm", "ctsvm")
_PAPER = {
    "Breast (keel-wdbc)": "97.8 / 96.9 / 97.2 / 96.5",
    "Banana-like": "79.5 / 79.3 / 71.5 / 58.5",
    "WinMac 300": "84.8 / 84.3 / 81.0 / 57.6",
    "WinMac 1000": "91.3 / 91.0 / 90.2 / 60.9",
    "IBM-like 60": "75.3 / 65.6 / 65.8 / 52.8",
    "IBM-like 300": "73.2 / 69.6 / 64.7 / 53.0",
    "IBM-like 1000": "73.4 / 74.8 / 73.1 / 61.8",
    "Course-like 60": "79.8 / 74.2 / 75.8 / 63.5",
    "Course-like 300": "92.9 / 88.8 / 90.4 / 80.2",
    "Course-like 1000": "94.6 / 91.3 / 93.6 / 83.6",
}


class Task(NamedTuple):
    """A row of Table 2: documents to draw from, and how many."""

    name: str
    X: Any
    y: NDArray[Any]
    """-1 or 1"""
    n: int
    n_labeled: int
    kernel: str


def banana(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Two arcs that embrace each other, in two dimensions, with noise."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    angle = rng.uniform(0, np.pi, n)
    X = np.column_stack([np.cos(angle) + (y < 0), y * np.sin(angle) + 0.5 * (y < 0)])
    return X + 0.25 * rng.standard_normal((n, 2)), y


def speed() -> str:
    """Seconds against n."""
    lines = []
    for n, bound in _BOUNDS.items():
        seconds, training, silence = _run(n, _PATIENCE * bound)
        gap = training.trace[-1].stage_objective / training.objective if training.trace else math.nan
        verdict = f"≤ {bound:g}: {'reached' if seconds <= bound else 'MISSED'}"
        more = "> " if training.status is Status.CANCELLED else ""
        lines.append([f"{n:,}", f"**{more}{number(seconds)}**", verdict, max(0, len(training.trace) - 1), f"{gap:.0e}", f"{silence * 1e3:.0f} ms"])
    note = (
        "Banana-like data, 20 labels, RBF kernel, default options (tolerance 1e-5), one run each of core.train.train after a warm-up at n = 40. "
        f"Silence: the longest time without a call of the observer. A run that takes {_PATIENCE} times as long as it may is stopped."
    )
    return f"## Time\n\n{note}\n\n{table(['n', 'seconds', 'to reach', 'steps', 'relative gap', 'longest silence'], lines)}"


def general() -> str:
    """The general solver on the same programmes, and the plot of both."""
    ours, theirs, lines = {}, {}, []
    for n in (20, 40, 60, 100, 300, 1000):
        ours[n], training, _ = _run(n, positive_fraction="labeled")
        if n > _LARGEST_GENERAL:
            continue
        value, timing = timed(partial(dual_value, _given(n)), repeats=1, warm_ups=0)
        theirs[n] = timing.median
        off = abs(training.objective - value) / value
        lines.append([n, number(ours[n]), number(theirs[n]), f"**{theirs[n] / ours[n]:,.0f}**", f"{off:.0e}"])
    _draw(ours, theirs, _DOCS / "ctsvm-figures.png")
    note = (
        "The same data and options, but for the class fractions, which are those of the labels. General solver: programme (12) through CVXPY and "
        "Clarabel with its defaults, its set-up included, one run each; it has no use for the structure. "
        "The last column is the relative distance of the two values."
    )
    heads = ["n", "ctsvm, s", "general solver, s", "ratio", "values differ by"]
    return f"## Beside a general solver\n\n{note}\n\n{table(heads, lines)}\n![Seconds against n](ctsvm-figures.png)\n"


def _run(n: int, most: float = math.inf, **options: Any) -> tuple[float, Training, float]:
    """Seconds, at most about ``most``, what was trained, and the longest silence; each step is told."""
    X, y = banana(n, 0)
    class_indices = np.full(n, -1, np.int32)
    class_indices[: min(20, n // 2)] = y[: min(20, n // 2)] > 0
    heard: list[float] = []
    steps = [("", -1)]

    def observer(point: TracePoint) -> bool:
        heard.append(time.perf_counter())
        if steps[-1] != (point.phase, point.iteration):
            steps.append((point.phase, point.iteration))
            place = f"n = {n:,}, {point.phase} {point.iteration}, {heard[-1] - heard[0]:.1f} s"
            print(f"{place}: {point.stage_objective:.2g} of {point.objective:.6g}", file=sys.stderr, flush=True)
        return heard[-1] - heard[0] > most

    rows = rows_of(X)
    train(TrainingTask(rows_of(X[:40]), class_indices[:40], ["no", "yes"], "ctsvm", options))
    heard.append(time.perf_counter())
    training = train(TrainingTask(rows, class_indices, ["no", "yes"], "ctsvm", options), TrainingContext(observer=observer))
    heard.append(time.perf_counter())
    return heard[-1] - heard[0], training, float(max(np.diff(heard)))


def _given(n: int) -> Given:
    """What ``_run`` solves, as the reference takes it."""
    X, y = banana(n, 0)
    gamma = 1 / (2 * float(X.var()))
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2)) + 1e-3 * np.eye(n)
    return Given(K, y[: min(20, n // 2)].astype(float), np.ones(n), CtsvmOptions().epsilon, 1.0)


def _draw(ours: dict[int, float], general: dict[int, float], figure: Path) -> None:
    from matplotlib.figure import Figure

    page = Figure(figsize=(6, 4), layout="constrained")
    axes = page.subplots()
    for label, times in (("ctsvm", ours), ("general solver", general)):
        big = {n: seconds for n, seconds in times.items() if n >= 60}
        slope = float(np.polyfit(np.log(list(big)), np.log(list(big.values())), 1)[0])
        axes.loglog(list(times), list(times.values()), "o-", label=f"{label}, slope {slope:.1f} from n = 60")
    axes.set(xlabel="documents", ylabel="seconds", title="The relaxation by its structure and by a general solver")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    page.savefig(figure, dpi=110)


def tasks() -> Iterator[Task]:
    """Like those of Table 1, as far as the data are to be had."""
    wdbc = load("keel-wdbc")
    dense = wdbc.X.toarray()
    yield Task("Breast (keel-wdbc)", (dense - dense.mean(axis=0)) / dense.std(axis=0), np.where(wdbc.y == wdbc.y.max(), 1, -1), 300, 20, "linear")
    yield Task("Banana-like", *banana(2000, 1), 400, 20, "rbf")
    news, groups = tfidf("20news-bydate")
    pages, kinds = tfidf("webkb4-stemmed")
    mac, windows, ibm = (groups == f"comp.{name}" for name in ("sys.mac.hardware", "os.ms-windows.misc", "sys.ibm.pc.hardware"))
    for n, n_labeled in ((60, 10), (300, 20), (1000, 50)):
        both = mac | windows
        yield Task(f"WinMac {n}", news[both], np.where(mac[both], 1, -1), n, n_labeled, "linear")
        yield Task(f"IBM-like {n}", news, np.where(ibm, 1, -1), n, n_labeled, "linear")
        yield Task(f"Course-like {n}", pages, np.where(kinds == "course", 1, -1), n, n_labeled, "linear")


def accuracy() -> str:
    """Table 2's protocol."""
    lines = []
    for task in tasks():
        trials = [_trial(task, seed) for seed in range(_TRIALS)]
        cells = [f"{100 * np.mean(column):.1f} ± {100 * np.std(column, ddof=1):.1f}" for column in zip(*trials, strict=True)]
        lines.append([task.name, *cells, _PAPER.get(task.name, "")])
        print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)
    heads = ["set", *_METHODS, "paper: CTSVM / CCCP / ∇TSVM / SVM"]
    note = (
        f"Accuracy in % on the unlabeled documents, mean and standard deviation of {_TRIALS} trials. A trial draws n documents, as many of "
        "either class, and 10, 20 or 50 labels among them, as many of either class: the class fractions are those of the labels, not estimated. "
        "C of the kernel family is tuned by five-fold "
        f"cross-validation of `kernel_svm` on the labels over {', '.join(f'{C:g}' for C in _CS)}, the largest of equals, and gamma for RBF; "
        "C_u = C; `svm`, `tsvm` and `da` have λ = 0.001, λ' = 1. "
        "The tolerance of `ctsvm` is 1e-3. The data are not the paper's: only the order of the methods may be compared with it."
    )
    return f"## Table 2 on like data\n\n{note}\n\n{table(heads, lines)}"


def _trial(task: Task, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    n, n_labeled = task.n, task.n_labeled
    halves = [rng.choice(np.flatnonzero(task.y == label), n // 2, replace=False) for label in (-1, 1)]
    labeled, rest = (np.concatenate([half[part] for half in halves]) for part in (slice(n_labeled // 2), slice(n_labeled // 2, None)))
    chosen = np.concatenate([labeled, rng.permutation(rest)])
    X, y = task.X[chosen], task.y[chosen]
    kernel = _tuned(task, X[: task.n_labeled], y[: task.n_labeled])
    return [_accuracy(X, y, task.n_labeled, method, kernel) for method in _METHODS]


def _tuned(task: Task, X: Any, y: NDArray[Any]) -> dict[str, Any]:
    """The kernel and the C that do best in cross-validation on labeled documents; of equals the largest C: text is separable."""
    scale = 1 / (X.shape[1] * float(X.var())) if task.kernel == "rbf" else 1.0
    kernels = [{"kernel": "rbf", "gamma": scale * factor} for factor in (0.25, 1.0, 4.0)] if task.kernel == "rbf" else [{"kernel": "linear"}]
    folds = np.empty(len(y), int)
    for label in (-1, 1):
        folds[y == label] = np.arange((y == label).sum()) % 5
    choices = [{**kernel, "C": C} for C in reversed(_CS) for kernel in kernels]
    return max(choices, key=lambda choice: _cross_validated(X, y, folds, choice))


def _cross_validated(X: Any, y: NDArray[Any], folds: NDArray[Any], options: dict[str, Any]) -> float:
    rows, right = rows_of(X), 0
    for fold in np.unique(folds):
        class_indices = np.where(folds == fold, -1, y > 0).astype(np.int32)
        if len(np.unique(class_indices[class_indices >= 0])) == 2:
            training = train(TrainingTask(rows, class_indices, [-1, 1], "kernel_svm", options))
            right += int((np.sign(training.scores[:, 0]) == y[training.unlabeled]).sum())
    return right / len(y)


def _accuracy(X: Any, y: NDArray[Any], n_labeled: int, method: str, kernel: dict[str, Any]) -> float:
    even = {"positive_fraction": "labeled"}
    own: dict[str, Any] = {
        "svm": {},
        "kernel_svm": kernel,
        "cccp_tsvm": {**even, **kernel, "C_u": kernel["C"]},
        "ctsvm": {**even, **kernel, "C": 2 * kernel["C"], "tolerance": 1e-3},
    }.get(method, even)
    class_indices = np.full(len(y), -1, np.int32)
    class_indices[:n_labeled] = y[:n_labeled] > 0
    training = train(TrainingTask(rows_of(X), class_indices, [-1, 1], method, own))
    return float(np.mean(np.where(training.scores[:, 0] > 0, 1, -1) == y[training.unlabeled]))


_SECTIONS: dict[str, Callable[[], str]] = {"speed": speed, "general": general, "accuracy": accuracy}


def main(names: list[str]) -> None:
    """Measure, print, write."""
    parts = [_SECTIONS[name]() for name in names or _SECTIONS]
    head = f"# The convex relaxation\n\nMade by `python -m benchmarks.ctsvm` on:\n{machine()}.\n[ctsvm.md](ctsvm.md) derives it."
    page = _DOCS / _PAGE
    write(_PAGE, renewed(page.read_text() if page.exists() else "", head, parts, _TITLES))


if __name__ == "__main__":
    main(sys.argv[1:])
