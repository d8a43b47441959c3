"""Learning curves: ``python -m benchmarks.learning [--sets a,b] [--seeds 5] [--jobs 1]`` writes
``docs/learning-curves.md`` and its plot.

From a few random labels of each class on, the service's own suggestions are labeled by truth, twenty at a time, and the
model is trained again. Its error is measured on documents outside the pool, so that no strategy is measured on what it
left over. Earlier runs are cached in ``build/``.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.predictions.schemas import Strategy
from benchmarks.base import DOCS, machine, options, table, write
from benchmarks.data import BUILD
from benchmarks.panel.automatic import answered, suggested
from benchmarks.panel.draws import Labels
from benchmarks.panel.results import Results, code_digest, digest
from benchmarks.panel.score import class_fractions, error, total_variation
from benchmarks.panel.sets import documents
from benchmarks.plots import Panel, draw
from core.documents.rows import SparseRows
from core.evaluation.measures import Reliability
from core.train import Training, TrainingContext, TrainingTask, train
from tests.core.problems import rows_of

SETS = ("reuters-r8", "pcmac", "webkb4-stemmed", "sms-spam")
FIRST, EACH, ROUNDS = 5, 20, 9
"""labels of each class at the start, labels of a round, rounds"""
MOST_POOL, MOST_TEST = 1500, 2000
MEASURES = {"error": "error", "variation": "class fractions, total variation", "calibration": "calibration error"}
_NOTES = Path(__file__).parent / "learning-notes.md"
_SHOWN = 3
"""every third round is in the tables; the plot has all"""


class Learner(NamedTuple):
    """An algorithm, and how it is asked which documents to label."""

    algorithm: str
    strategy: Strategy

    @property
    def name(self) -> str:
        return f"{self.algorithm}, {self.strategy}"


SVM, AUTO = Learner("svm", "random"), Learner("auto", "random")
LEARNERS = (SVM, AUTO, Learner("auto", "uncertain"), Learner("auto", "diverse"))
_OPTIONS: dict[str, dict[str, Any]] = {"svm": {"probabilities": True}, "auto": {}}


class Split(NamedTuple):
    """A pool of documents to label, and documents to test on."""

    rows: SparseRows
    class_indices: NDArray[np.int32]
    test_rows: SparseRows
    test_class_indices: NDArray[np.int32]
    first: NDArray[np.int64]
    """positions in the pool that are labeled at the start, as many of each class"""

    @property
    def n_classes(self) -> int:
        return int(self.class_indices.max()) + 1


Curve = dict[str, list[float]]
"""MEASURES, a number before the first round and one after each"""
Curves = Mapping[tuple[str, Learner], Sequence[Curve]]
"""by set and learner, one for each seed"""


@cache
def split(name: str, seed: int) -> Split:
    """A random split; the pool is at most half of a set."""
    data, rng = documents(name), np.random.default_rng(seed)
    order = rng.permutation(len(data.class_indices))
    size = min(MOST_POOL, len(order) // 2)
    pool, test = np.sort(order[:size]), np.sort(order[size : size + MOST_TEST])
    class_indices = data.class_indices[pool]
    first = [
        rng.permutation(np.flatnonzero(class_indices == class_index))[:FIRST]
        for class_index in range(int(data.class_indices.max()) + 1)
    ]
    return Split(
        rows_of(data.X[pool]), class_indices, rows_of(data.X[test]), data.class_indices[test], np.concatenate(first)
    )


def run(name: str, learner: Learner, seed: int) -> Curve:
    """One curve: train, measure, suggest, label, and repeat."""
    data = split(name, seed)
    labels, curve = Labels.of(data.first, data.class_indices), {measure: list[float]() for measure in MEASURES}
    for round_ in range(ROUNDS + 1):
        training = _trained(data, learner, labels, seed)
        for measure, value in _measured(data, training).items():
            curve[measure].append(value)
        if round_ < ROUNDS:
            found = suggested(training, data.rows, learner.strategy, EACH, seed=100 * seed + round_)
            labels = labels.followed_by(answered(found, data.class_indices))
    return curve


def _trained(data: Split, learner: Learner, labels: Labels, seed: int) -> Training:
    class_indices, drawn = np.full(len(data.class_indices), -1, np.int32), np.zeros(len(data.class_indices), np.int8)
    class_indices[labels.positions], drawn[labels.positions] = labels.told, labels.drawn
    task = TrainingTask(
        data.rows,
        class_indices,
        list(range(data.n_classes)),
        learner.algorithm,
        _OPTIONS[learner.algorithm],
        seed,
        drawn=drawn,
    )
    return train(task, TrainingContext(threads=1))


def _measured(data: Split, training: Training) -> dict[str, float]:
    scores = training.model.scores(data.test_rows)
    probabilities = training.model.calibrated_probabilities(scores)
    assert training.probabilities is not None
    unlabeled = class_fractions(data.class_indices[training.unlabeled], data.n_classes)
    return {
        "error": error(training.model.labels_of(scores, probabilities), data.test_class_indices),
        "variation": total_variation(training.probabilities.mean(axis=0), unlabeled),
        "calibration": Reliability.of(probabilities, data.test_class_indices).expected_error,
    }


def curves(names: Sequence[str], seeds: int, jobs: int, results: Results) -> Curves:
    """All curves; those that are known are not run again."""
    for name in names:
        documents(name)  # vectorised here, once, and not in every process
    todo = [(name, learner, seed) for seed in range(seeds) for name in names for learner in LEARNERS]
    found: dict[tuple[str, Learner], list[Curve]] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for (name, learner, seed), curve in zip(todo, pool.map(partial(_kept, results), todo), strict=True):
            print(name, learner.name, seed, *(f"{value:.3f}" for value in curve["error"]), file=sys.stderr, flush=True)
            found.setdefault((name, learner), []).append(curve)
    return found


def _kept(results: Results, task: tuple[str, Learner, int]) -> Curve:
    name, learner, seed = task
    basis = digest(code_digest("core", "benchmarks/learning.py", "benchmarks/panel/automatic.py"), *map(str, task))
    return results.get(f"{name}/{learner.algorithm}-{learner.strategy}-{seed}", basis, lambda: run(*task))


def page(found: Curves, names: Sequence[str]) -> str:
    return "\n".join(
        [
            "# Which documents to label next: learning curves\n",
            f"Made by `python -m benchmarks.learning` on:\n{machine()}.\n",
            f"Pools of at most {MOST_POOL:,} documents, error on at most {MOST_TEST:,} others.\n"
            f"Every run begins with {FIRST} random labels of each class.\n"
            f"In each round the model suggests {EACH} more, with the service's defaults.\n"
            "The columns are labels after the first ones. `svm` is the supervised SVM, with random labels.\n"
            "Figures are means over the seeds, ± the standard error of the mean.\n",
            "![learning curves](learning-curves.png)\n",
            _against_random(found, names),
            *(part for name in names for part in _of_set(found, name)),
            "## What `auto` makes of it\n",
            _means(found, names),
            _NOTES.read_text(),
        ]
    )


def _against_random(found: Curves, names: Sequence[str]) -> str:
    """Mean error over all rounds, less the same learner's with random labels, seed by seed."""
    rows = []
    for learner in LEARNERS:
        if learner.strategy == "random":
            continue
        cells = []
        for name in names:
            off = _values(found, name, learner, "error")[:, 1:].mean(axis=1) - _values(found, name, AUTO, "error")[
                :, 1:
            ].mean(axis=1)
            cells.append(f"{off.mean():+.3f} ({np.count_nonzero(off < 0)} of {len(off)})")
        rows.append([learner.name, *cells])
    head = "Mean error after all rounds less that of random labels; in brackets, in how many seeds it is below:\n"
    return f"{head}\n{table(['learner', *names], rows)}"


def _of_set(found: Curves, name: str) -> Iterator[str]:
    data = split(name, 0)
    counts = ", ".join(
        f"{fraction:.3f}" for fraction in np.sort(class_fractions(data.class_indices, data.n_classes))[::-1]
    )
    yield f"## {name}\n"
    yield f"{len(data.class_indices):,} documents to choose from, {data.n_classes} classes: {counts}.\n"
    rows = []
    for learner in LEARNERS:
        errors = _values(found, name, learner, "error")
        spread = (
            errors.std(axis=0, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.full(errors.shape[1], np.nan)
        )
        rows.append(
            [
                learner.name,
                *(
                    f"{mean:.3f} ± {each:.3f}"
                    for mean, each in zip(errors.mean(axis=0)[::_SHOWN], spread[::_SHOWN], strict=True)
                ),
            ]
        )
    yield table(["learner", *_numbers()], rows)


def _means(found: Curves, names: Sequence[str]) -> str:
    rows = []
    for learner in LEARNERS[1:]:
        for measure, title in MEASURES.items():
            means = np.mean([_values(found, name, learner, measure).mean(axis=0) for name in names], axis=0)
            rows.append([learner.name, title, *(f"{value:.3f}" for value in means[::_SHOWN])])
    return table(["learner", "mean over the sets", *_numbers()], rows)


def _values(found: Curves, name: str, learner: Learner, measure: str) -> NDArray[np.float64]:
    """shape (n_seeds, 1 + ROUNDS)."""
    return np.array([curve[measure] for curve in found[name, learner]])


def _numbers() -> list[str]:
    return [str(EACH * round_) for round_ in range(0, ROUNDS + 1, _SHOWN)]


def plot(found: Curves, names: Sequence[str], target: Path) -> None:
    across = [EACH * round_ for round_ in range(ROUNDS + 1)]
    panels = []
    for name in names:
        drawn = {
            learner.name: (across, _values(found, name, learner, "error").mean(axis=0).tolist()) for learner in LEARNERS
        }
        panels.append(Panel(name, drawn, "labels after the first", "error"))
    draw(panels, target)


def main(arguments: list[str]) -> None:
    given = options(__doc__, arguments, sets=",".join(SETS), seeds=5, jobs=1)
    names = given.sets.split(",")
    found = curves(names, given.seeds, given.jobs, Results(folder=BUILD / "learning"))
    plot(found, names, DOCS / "learning-curves.png")
    write("learning-curves.md", page(found, names))


if __name__ == "__main__":
    main(sys.argv[1:])
