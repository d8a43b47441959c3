"""CutS3VM beside the other transductive methods, and its time: ``python -m benchmarks.cuts3vm`` writes ``docs/cuts3vm.md`` and its plots.

``python -m benchmarks.cuts3vm errors`` or ``speed`` measures one half and leaves the other as it was measured last (kept in ``build/``).
"""

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.base import class_indices_of, machine, number, rows_of, table, timed, unit, write
from benchmarks.data import load, text_like, tfidf
from core.documents.rows import SparseRows
from core.problem.result import Status
from core.train import Training, TrainingTask, train
from core.warm_up import warm_up

_ROOT = Path(__file__).parent.parent
_KEPT = _ROOT / "build" / "cuts3vm"
_LABELS, _DRAWS = 50, 5
_SIZES = (12_500, 25_000, 50_000, 100_000, 200_000, 400_000, 804_414)
_SMALL_SIZES = (500, 1000, 2000, 4000, 8000, 18_846)
_FRACTION = 0.3494
_METHODS = ("svm", "tsvm", "da", "cccp_tsvm", "cuts3vm", "paper's")

_TEXT = """# CutS3VM

The transductive SVM with hinge loss of Zhao, Wang and Zhang, beside the other methods.
The paper is *CutS3VM: A Fast Semi-Supervised SVM Algorithm* (2008).
Made by `python -m benchmarks.cuts3vm` on:
{}.

## Errors

Mean error in % on the unlabeled documents, with 50 labels.

- Draws of labels: the official ones of pcmac and g50c, elsewhere by seed with at least one label a class.
- As in the paper every method is given the true fractions.
- Nothing is tuned: all methods have their defaults.
  `cccp_tsvm` has a linear kernel and C = 1000 / labels, which weighs losses as `cuts3vm` does.
- The last method has the paper's C_l, C_u and ε, converted by C = C_l l / n and C_u u / n.

{}
![Errors](cuts3vm-errors.png)

What reproduced: with the paper's own parameters, the error on pcmac (its text1) and g50c comes near to the printed one.
A round takes one to three turns of the concave-convex procedure, as in its Table 3.

That column alone was tuned: by the paper, in a grid search on labels that it does not name.
The other columns might gain by one, too.

What did not reproduce:

- **The most accurate on almost all sets.**
  Annealing is better on pcmac, rec and Windows/Mac, `cccp_tsvm` on the last two.
  The errors that the paper prints for others are far above what they reach here
  (deterministic annealing on 20 news 24.62, and 5.70 on text1).
- **Cora.** The paper had 4,000 to 8,300 words a subset. Only those of the titles are available here.
  Its own supervised SVM of all labels errs in 27 to 48 %. WebKB is by topic here, by school there.
  With the many classes of these sets one-vs-rest by `cuts3vm` is worse than by `tsvm`, and on most of Cora than `svm`.
  A likely cause: it fixes the *mean score* of the unlabeled documents to 2 r - 1, not the share of positive ones.
- **The paper's parameters on other features.**
  On unit rows of tf-idf they smooth far too much when there are several classes. The paper does not name its features.
- **The end of Algorithm 1.**
  With |o| always linearised at the last point, signs went on changing for 300 rounds in 26 of 144 small problems,
  and for 200 on the text-like set with C_u = 10 C.
  Held at the best point once two rounds bring none better, it ends in all of these.
  The 144 took a fifth of the passes, and their objective was 5 % lower on the mean.
- **The random start of Algorithm 2.**
  Without planes the minimum is w = 0 wherever the start is, so here the first plane is cut at the start.

## Speed

Fractions as generated (0.3494), 1,000 labels, defaults.
One thread of SciPy in float64 makes the unit, `X @ p` plus `X.T @ z`; training has two.

{}
![Time against documents](cuts3vm-speed.png)
"""


class Task(NamedTuple):
    """Documents, draws of labels, what the paper used on its like (C_l, C_u, ε) and the accuracies in % that it printed for CutS3VM and SVM."""

    name: str
    X: sp.csr_matrix
    y: NDArray[Any]
    draws: list[NDArray[np.int64]]
    parameters: tuple[float, float, float]
    printed: str


def tasks() -> Iterator[Task]:
    """All sets of the comparison."""
    text, toy, cora = load("pcmac"), load("g50c"), load("cora-hier")
    yield Task("pcmac", text.X, text.y, list(text.splits["labeled"]), (960, 270, 0.01), "5.33 (text1)")
    yield Task("g50c", toy.X, toy.y, list(toy.splits["labeled"]), (1, 1, 0.01), "4.08")
    news, labels = tfidf("20news-bydate")
    rec, windows_mac = np.char.startswith(labels, "rec."), np.isin(labels, ["comp.os.ms-windows.misc", "comp.sys.mac.hardware"])
    yield _drawn("rec, 4 groups", news[rec], labels[rec], (128, 64, 0.1), "15.26 (20 news)")
    yield _drawn("Windows/Mac", news[windows_mac], labels[windows_mac], (128, 64, 0.1), "")
    parameters = {"DS": (128, 4, 0.1), "HA": (32, 2, 0.1), "ML": (64, 8, 0.1), "OS": (256, 4, 0.1), "PL": (64, 0.25, 0.1)}
    printed = {"DS": "54.21", "HA": "32.86", "ML": "36.63", "OS": "31.02", "PL": "57.84"}
    for part, own in parameters.items():
        rows = cora.splits[f"subset_{part}"]
        yield _drawn(f"cora {part}", _unit_rows(cora.X[rows]), cora.y[rows], own, printed[part])
    pages, topics = tfidf("webkb4-stemmed")
    yield _drawn("webkb, 4 topics", pages, topics, (128, 0.125, 0.1), "11.74 to 20.86 (by school)")


def _drawn(name: str, X: Any, y: NDArray[Any], parameters: tuple[float, float, float], printed: str) -> Task:
    return Task(name, sp.csr_matrix(X), y, [_draw(y, seed) for seed in range(_DRAWS)], parameters, printed)


def _draw(y: NDArray[Any], seed: int) -> NDArray[np.int64]:
    """Rows to label: one of each class, the rest at random."""
    order = np.random.default_rng(seed).permutation(len(y))
    first = order[np.unique(y[order], return_index=True)[1]]
    rest = order[~np.isin(order, first)]
    return np.sort(np.concatenate([first, rest[: _LABELS - len(first)]]))


def _unit_rows(X: Any) -> sp.csr_matrix:
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / np.maximum(norms, 1e-12)) @ X)


def _options(method: str, task: Task, labeled: NDArray[np.int64]) -> dict[str, Any]:
    """Defaults for all, with the true fractions of the unlabeled rows as in the paper; its own parameters divide by n where ours are of means."""
    if method == "svm":
        return {}
    hidden = np.delete(task.y, labeled)
    classes = np.unique(task.y)
    shares = {str(label): float(np.mean(hidden == label)) for label in classes}
    options: dict[str, Any] = {"class_fractions": shares} if len(classes) > 2 else {"positive_fraction": shares[str(classes[1])]}
    if method == "cccp_tsvm":
        options |= {"kernel": "linear", "C": 1000.0 / len(labeled)}
    if method == "paper's":
        (C, C_u, epsilon), share = task.parameters, len(labeled) / len(task.y)
        options |= {"C": C * share, "C_u": C_u * (1 - share), "epsilon": epsilon}
    return options


def _error(training: Training, y: NDArray[Any]) -> float:
    predicted = np.array(training.model.classes)[training.model.labels_of(training.scores)]
    return float(np.mean(predicted != y[training.unlabeled]))


def errors() -> dict[str, Any]:
    """Transductive errors in % of every method on every set, and how many of cuts3vm's runs converged."""
    answers: dict[str, Any] = {}
    for task in tasks():
        rows = rows_of(task.X)
        own: dict[str, dict[str, Any]] = {}
        for method in _METHODS:
            trainings = []
            for labeled in task.draws:
                class_indices, _ = class_indices_of(task.y, labeled)
                names = [str(name) for name in np.unique(task.y)]
                algorithm = "cuts3vm" if method == "paper's" else method
                trainings.append(train(TrainingTask(rows, class_indices, names, algorithm, _options(method, task, labeled))))
            names_of = task.y.astype(str)
            own[method] = {
                "errors": [100 * _error(training, names_of) for training in trainings],
                "converged": sum(training.status is Status.CONVERGED for training in trainings) / len(trainings),
                "turns": float(np.mean([_turns(training) for training in trainings])),
            }
        answers[task.name] = {"methods": own, "printed": task.printed, "draws": len(task.draws)}
        print(task.name, {method: round(float(np.mean(own[method]["errors"])), 2) for method in own}, file=sys.stderr)
    return answers


def _turns(training: Training) -> float:
    """Concave-convex iterations a round (Table 3's last column)."""
    phases = [point.phase for point in training.trace if "round=" in point.phase]
    return len(phases) / len(set(phases)) if phases else float("nan")


def speed() -> dict[str, Any]:
    """Units on the text-like set; seconds against rows, up to RCV1's size, and on samples of real documents."""
    warm_up()
    data = text_like()
    one, rows = unit(data.X), rows_of(data.X)
    test = rows_of(data.X_test)
    reach: dict[str, dict[str, Any]] = {}
    for name in ("cuts3vm", "tsvm"):
        training, timing = timed(lambda name=name: _train(rows, data.y, name), 5)  # type: ignore[misc]
        predicted = np.array(training.model.classes)[training.model.labels_of(training.model.scores(test))]
        reach[name] = {
            "units": timing.median / one,
            "spread": timing.spread,
            "passes": training.passes,
            "error": float(np.mean(predicted != data.y_test)),
        }
        reach[name] |= {"status": training.status, "rounds": len({point.phase for point in training.trace if "round=" in point.phase})}
    big = text_like(_SIZES[-1], 47_236)
    everything = rows_of(big.X)
    seconds = {name: [_seconds(everything.between(0, size), big.y[:size], name) for size in _SIZES] for name in ("cuts3vm", "tsvm")}
    documents, labels = tfidf("20news-bydate")
    comp, order = np.char.startswith(labels, "comp.").astype(int), np.random.default_rng(0).permutation(len(labels))
    real = [_seconds(rows_of(documents[order[:size]]), comp[order[:size]], "cuts3vm", 250, float(comp.mean())) for size in _SMALL_SIZES]
    return {"unit": one, "reach": reach, "seconds": seconds, "real": real}


def _train(rows: SparseRows, y: NDArray[Any], name: str, n_labeled: int = 1000, fraction: float = _FRACTION) -> Training:
    class_indices, classes = class_indices_of(y, np.arange(n_labeled))
    return train(TrainingTask(rows, class_indices, classes, name, {"positive_fraction": fraction}))


def _seconds(rows: SparseRows, y: NDArray[Any], name: str, n_labeled: int = 1000, fraction: float = _FRACTION) -> float:
    repeats = 3 if rows.n_rows <= 100_000 else 1
    return timed(lambda: _train(rows, y, name, n_labeled, fraction), repeats, warm_ups=0)[1].median


def _slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _errors_section(found: dict[str, Any]) -> str:
    lines = []
    for name, own in found.items():
        means = {method: float(np.mean(of["errors"])) for method, of in own["methods"].items()}
        least = min(means.values())
        cells = [f"**{mean:.2f}**" if mean == least else f"{mean:.2f}" for mean in means.values()]
        turns, ends = own["methods"]["cuts3vm"]["turns"], [own["methods"][method]["converged"] for method in ("cuts3vm", "paper's")]
        lines.append([name, own["draws"], *cells, own["printed"], f"{turns:.2f}", " / ".join(f"{end:.0%}" for end in ends)])
    heads = ["set", "draws", "svm", "tsvm", "da", "cccp_tsvm, linear", "cuts3vm, defaults", "cuts3vm, paper's C_l, C_u, ε"]
    heads += ["printed for CutS3VM", "CCCP turns a round", "converged (defaults / paper's)"]
    return table(heads, lines)


def _speed_section(found: dict[str, Any]) -> str:
    lines = []
    for name, own in found["reach"].items():
        verdict = ("reached" if own["units"] <= 60 else "MISSED") if name == "cuts3vm" else ""
        lines.append(
            [
                name,
                f"**{own['units']:.1f}** ± {own['spread']:.0%}",
                "≤ 60",
                verdict,
                f"{own['passes']:.0f}",
                own["rounds"] or "",
                f"{own['error']:.4f}",
            ]
        )
        lines[-1].append(own["status"])
    first = table(["100,000 × 47,000, 1,000 labeled", "units", "to reach", "", "passes", "rounds", "test error", "ended"], lines)
    rows = []
    for name, seconds in found["seconds"].items():
        slope = _slope(_SIZES, seconds)
        rows.append(
            [
                name,
                *(f"{second:.2f}" for second in seconds),
                f"**{slope:.2f}**",
                "reached" if slope <= 1.1 else "MISSED",
                f"{_slope(_SIZES[-2:], seconds[-2:]):.2f}",
            ]
        )
    second = table(["seconds at rows", *(f"{size:,}" for size in _SIZES), "slope", "≤ 1.1", "of the last step"], rows)
    slope = _slope(_SMALL_SIZES, found["real"])
    cells = ["cuts3vm", *(f"{value:.3f}" for value in found["real"]), f"**{slope:.2f}**", "reached" if slope <= 1.1 else "MISSED"]
    cells.append(f"{_slope(_SMALL_SIZES[-2:], found['real'][-2:]):.2f}")
    third = table(["20news, comp. against the rest", *(f"{size:,}" for size in _SMALL_SIZES), "slope", "≤ 1.1", "of the last step"], [cells])
    return f"One unit here: {number(found['unit'] * 1e3)} ms (median of training five times, half the range).\n\n{first}\n{second}\n{third}"


def _draw_plots(found_errors: dict[str, Any], found_speed: dict[str, Any]) -> None:
    from matplotlib.figure import Figure

    page = Figure(figsize=(11, 4.5), layout="constrained")
    axes = page.subplots()
    for position, method in enumerate(_METHODS):
        means = [float(np.mean(own["methods"][method]["errors"])) for own in found_errors.values()]
        spreads = [float(np.std(own["methods"][method]["errors"])) for own in found_errors.values()]
        axes.errorbar(np.arange(len(means)) + 0.1 * (position - 2.5), means, spreads, fmt="o", label=method, capsize=2)
    axes.set_xticks(np.arange(len(found_errors)), list(found_errors), rotation=20)
    axes.set(ylabel="error on the unlabeled documents, %", title="Mean and standard deviation over draws of labels")
    axes.grid(True, axis="y", alpha=0.3)
    axes.legend()
    page.savefig(_ROOT / "docs" / "cuts3vm-errors.png", dpi=110)
    page = Figure(figsize=(6, 4), layout="constrained")
    axes = page.subplots()
    for name, seconds in found_speed["seconds"].items():
        axes.loglog(_SIZES, seconds, "o-", label=f"{name}, slope {_slope(_SIZES, seconds):.2f}")
    axes.loglog(_SMALL_SIZES, found_speed["real"], "s-", label=f"cuts3vm, 20news, slope {_slope(_SMALL_SIZES, found_speed['real']):.2f}")
    axes.set(xlabel="documents", ylabel="seconds", title="Training time")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    page.savefig(_ROOT / "docs" / "cuts3vm-speed.png", dpi=110)


@cache
def _kept(name: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((_KEPT / f"{name}.json").read_text())
    return kept


def main(names: list[str]) -> None:
    """Measure, keep, draw, write."""
    _KEPT.mkdir(parents=True, exist_ok=True)
    for name, measure in (("errors", errors), ("speed", speed)):
        if not names or name in names:
            (_KEPT / f"{name}.json").write_text(json.dumps(measure()))
    _draw_plots(_kept("errors"), _kept("speed"))
    write("cuts3vm.md", _TEXT.format(machine(), _errors_section(_kept("errors")), _speed_section(_kept("speed"))))


if __name__ == "__main__":
    main(sys.argv[1:])
