"""Learning curves: ``python -m benchmarks.learning [--sets a,b] [--learners svm,auto] [--seeds 5]`` writes ``docs/learning-curves.md`` and its plot.

Active learning from two labels of each class on: a model suggests which documents to label next, and is trained again with their labels. Its error is
measured on documents outside the pool, so that no strategy is measured on what it left over. Earlier runs are cached in ``build/``.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import commit, machine, rows_of, table, write
from benchmarks.data import BUILD
from benchmarks.kernel.plots import Panel, draw
from benchmarks.panel.measures import class_fractions, error, total_variation
from benchmarks.panel.sets import documents
from core.documents.rows import SparseRows
from core.evaluation import Reliability
from core.evaluation.active_learning import POOL, representatives, top_two
from core.models.model import Model
from core.train import TrainingContext, TrainingTask, train

SETS = ("reuters-r8", "pcmac", "webkb4-stemmed", "sms-spam")
POINTS = (2, 4, 8, 16, 32, 64, 100)
"""labels a class, on the mean, since the class of a document is not known before it is labeled"""
STRATEGIES = ("random", "uncertain", "diverse")
MOST_POOL, MOST_TEST = 1500, 2000
_FIRST = 2
_DOCS = Path(__file__).parent.parent / "docs"
_NOTES = Path(__file__).parent / "learning-notes.md"

Positions = NDArray[np.int64]


class Learner(NamedTuple):
    """A training that is repeated along a curve."""

    name: str
    algorithm: str
    options: dict[str, Any]


SVM = Learner("svm", "svm", {})
AUTO = Learner("auto", "auto", {})
AUTO_CHOSEN = Learner("auto, told", "auto", {"labels_drawn": "chosen"})
CURVES = (
    *((SVM, strategy) for strategy in STRATEGIES),
    (AUTO, "random"),
    *((learner, strategy) for strategy in STRATEGIES[1:] for learner in (AUTO, AUTO_CHOSEN)),
)


class Split(NamedTuple):
    """A pool of documents to label, and documents to test on."""

    rows: SparseRows
    class_indices: NDArray[np.int32]
    test_rows: SparseRows
    test_class_indices: NDArray[np.int32]
    first: Positions
    """positions in the pool that are labeled at the start, as many of each class"""

    @property
    def n_classes(self) -> int:
        return int(self.class_indices.max()) + 1


class Curve(NamedTuple):
    """Measures of one run, a number a point."""

    errors: list[float]
    variations: list[float | None]
    """total variation between the class fractions found and the true ones of unlabeled documents; None of the supervised SVM"""
    calibrations: list[float | None]
    """expected calibration errors; None of the supervised SVM"""
    code: str = ""
    """commit of the code that made the run; empty where it is not known"""


@cache
def split(name: str, seed: int) -> Split:
    """A random split; the pool is at most half of a set."""
    data, rng = documents(name), np.random.default_rng(seed)
    order = rng.permutation(len(data.class_indices))
    size = min(MOST_POOL, len(order) // 2)
    pool, test = np.sort(order[:size]), np.sort(order[size : size + MOST_TEST])
    class_indices = data.class_indices[pool]
    first = [rng.permutation(np.flatnonzero(class_indices == class_index))[:_FIRST] for class_index in range(int(data.class_indices.max()) + 1)]
    return Split(rows_of(data.X[pool]), class_indices, rows_of(data.X[test]), data.class_indices[test], np.concatenate(first))


def chosen(strategy: str, model: Model, rows: SparseRows, unlabeled: Positions, n: int, rng: np.random.Generator) -> Positions:
    """The ``n`` documents to label next."""
    if strategy == "random":
        return rng.choice(unlabeled, n, replace=False)
    scores = model.scores(rows)[unlabeled]
    probabilities = model.probabilities(scores)
    margins = top_two(scores if probabilities is None else probabilities).margins
    least = unlabeled[np.argsort(margins, kind="stable")]
    if strategy == "uncertain":
        return least[:n]
    pool = least[: POOL * n]
    return pool[representatives(rows.taken(pool), n)] if len(pool) > n else pool


def run(name: str, learner: Learner, strategy: str, seed: int) -> Curve:
    """One curve: train, measure, select, label, and repeat."""
    data = split(name, seed)
    rng, labeled, curve = np.random.default_rng([seed, 1]), data.first, Curve([], [], [], commit())
    model: Model | None = None
    for point in POINTS:
        everything = np.arange(len(data.class_indices))
        missing = min(point * data.n_classes, len(everything) * 2 // 3) - len(labeled)
        if model is not None and missing > 0:
            labeled = np.append(labeled, chosen(strategy, model, data.rows, np.setdiff1d(everything, labeled), missing, rng))
        class_indices = np.full(len(everything), -1, np.int32)
        class_indices[labeled] = data.class_indices[labeled]
        training = train(
            TrainingTask(data.rows, class_indices, list(range(data.n_classes)), learner.algorithm, learner.options, seed=seed),
            TrainingContext(threads=1),
        )
        model = training.model
        scores = model.scores(data.test_rows)
        curve.errors.append(error(model.labels_of(scores), data.test_class_indices))
        probabilities = model.probabilities(scores)
        curve.calibrations.append(None if probabilities is None else Reliability.of(probabilities, data.test_class_indices).expected_error)
        found = training.report and list(training.report["class_fractions"].values())
        truth = class_fractions(np.delete(data.class_indices, labeled), data.n_classes)
        curve.variations.append(total_variation(np.array(found), truth) if found else None)
    return curve


def curves(names: Sequence[str], algorithms: Sequence[str], seeds: int) -> dict[str, Curve]:
    """All curves, by ``key``. Missing ones are run seed by seed, so that a part of them can be compared, too."""
    file = BUILD / "learning.json"
    known = {key: Curve(*curve) for key, curve in json.loads(file.read_text()).items()} if file.exists() else {}
    for seed in range(seeds):
        for name in names:
            for learner, strategy in CURVES:
                place = key(name, learner, strategy, seed)
                if place not in known and learner.algorithm in algorithms:
                    known[place] = run(name, learner, strategy, seed)
                    print(place, " ".join(f"{value:.3f}" for value in known[place].errors), file=sys.stderr, flush=True)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(json.dumps(known))
    return known


def key(name: str, learner: Learner, strategy: str, seed: int | str) -> str:
    return f"{name}/{learner.name}/{strategy}/{seed}"


def seeds_of(known: dict[str, Curve], name: str, learner: Learner, strategy: str) -> set[int]:
    """The seeds of such curves."""
    places = (place.rsplit("/", 1) for place in known)
    return {int(seed) for place, seed in places if f"{place}/" == key(name, learner, strategy, "")}


def of_seeds(
    known: dict[str, Curve], name: str, learner: Learner, strategy: str, what: str, seeds: Iterable[int] | None = None
) -> NDArray[np.float64]:
    """shape (n_seeds, n_points)."""
    chosen = sorted(seeds_of(known, name, learner, strategy) if seeds is None else seeds)
    return np.array([getattr(known[key(name, learner, strategy, seed)], what) for seed in chosen], float)


def page(known: dict[str, Curve], names: Sequence[str]) -> str:
    parts = [
        "# Which documents to label next: learning curves\n",
        f"Made by `python -m benchmarks.learning` on:\n{machine()}.\n",
        f"Pools of at most {MOST_POOL:,} documents, error on at most {MOST_TEST:,} others.\n"
        "Figures are means and, in brackets, standard deviations over the seeds.\n"
        f"Every run begins with {_FIRST} random labels of each class. The columns are labels a class on the mean.\n"
        "At most two thirds of a pool are labeled.\n\n"
        "| learner | |\n| --- | --- |\n| `svm` | the supervised SVM |\n| `auto` | the default |\n"
        "| `auto, told` | `auto` with `labels_drawn: chosen` |\n\n"
        f"{_origins(known)}\n",
        "![learning curves](learning-curves.png)\n",
        _against_random(known, names),
    ]
    for name in names:
        data = split(name, 0)
        counts = ", ".join(f"{fraction:.3f}" for fraction in np.sort(class_fractions(data.class_indices, data.n_classes))[::-1])
        parts += [
            f"## {name}\n",
            f"{len(data.class_indices):,} documents to choose from, {data.n_classes} classes: {counts}.\n",
            _errors(known, name),
        ]
    parts += ["## What `auto` makes of it\n", _fractions(known, names), _NOTES.read_text()]
    return "\n".join(parts)


def _origins(known: dict[str, Curve]) -> str:
    """Numbers of curves by the code that made them."""
    made: dict[str, int] = {}
    for place, curve in known.items():
        origin = f"{place.split('/')[1]} at {curve.code or 'a commit that was not kept'}"
        made[origin] = made.get(origin, 0) + 1
    return f"Curves by the code that made them: {'; '.join(f'{count} of {origin}' for origin, count in sorted(made.items()))}."


def _against_random(known: dict[str, Curve], names: Sequence[str]) -> str:
    """Mean error over all points, as a difference to random labels of the same learner, seed by seed."""
    rows = []
    for learner, strategy in CURVES:
        if strategy == "random":
            continue
        base = SVM if learner is SVM else AUTO
        cells = []
        for name in names:
            pairs = ((learner, strategy), (base, "random"))
            both = set.intersection(*(seeds_of(known, name, *pair) for pair in pairs))
            own, random = (of_seeds(known, name, *pair, "errors", both).mean(axis=1) for pair in pairs)
            cells.append(f"{(own - random).mean():+.3f} ({np.count_nonzero(own < random)} of {len(both)})")
        rows.append([learner.name, strategy, *cells])
    head = "Mean error over all points less that of random labels; in brackets, in how many seeds it is below:\n"
    return f"{head}\n{table(['learner', 'strategy', *names], rows)}"


def _errors(known: dict[str, Curve], name: str) -> str:
    rows = []
    for learner, strategy in CURVES:
        errors = of_seeds(known, name, learner, strategy, "errors")
        cells = [f"{mean:.3f} ({deviation:.3f})" for mean, deviation in zip(errors.mean(axis=0), errors.std(axis=0), strict=True)]
        rows.append([learner.name, strategy, *cells, len(errors)])
    return table(["learner", "strategy", *map(str, POINTS), "seeds"], rows)


def _fractions(known: dict[str, Curve], names: Iterable[str]) -> str:
    """Total variation of the fractions and calibration error, means over the sets."""
    rows = []
    for learner, strategy in CURVES:
        if learner is SVM:
            continue
        for what, title in (("variations", "fractions, total variation"), ("calibrations", "calibration error")):
            means = np.mean([of_seeds(known, name, learner, strategy, what).mean(axis=0) for name in names], axis=0)
            rows.append([learner.name, strategy, title, *(f"{value:.3f}" for value in means)])
    return table(["learner", "strategy", "mean over the sets", *map(str, POINTS)], rows)


def plot(known: dict[str, Curve], names: Sequence[str], target: Path) -> None:
    shown = [(SVM, strategy) for strategy in STRATEGIES] + [(AUTO, "random"), (AUTO_CHOSEN, "uncertain"), (AUTO_CHOSEN, "diverse")]
    panels = []
    for name in names:
        drawn = {f"{a.name} {s}": (POINTS, of_seeds(known, name, a, s, "errors").mean(axis=0).tolist()) for a, s in shown}
        panels.append(Panel(name, drawn, "labels a class", "error", logarithmic=True))
    draw(panels, target)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--learners", default="svm,auto", help="algorithms, with commas between")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args(arguments)
    names = given.sets.split(",")
    known = curves(names, given.learners.split(","), given.seeds)
    plot(known, names, _DOCS / "learning-curves.png")
    write("learning-curves.md", page(known, names))


if __name__ == "__main__":
    main(sys.argv[1:])
