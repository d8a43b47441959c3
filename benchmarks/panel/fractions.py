"""``python -m benchmarks.panel.fractions [--sets a,b] [--draws a,b] [--seeds 2] [--jobs 1]``: ``auto`` by itself,
told the true class fractions, and told the estimate that anyone would try first.

It writes ``docs/data/few-labels-fractions.csv``, a line for each run, and the section of ``docs/few-labels.md`` by
these. Results are kept as those of the panel.
"""

import csv
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import Figure, options, table
from benchmarks.panel.results import Results
from benchmarks.panel.runs import Bench
from benchmarks.panel.score import class_fractions, total_variation
from benchmarks.panel.sets import documents
from benchmarks.panel.tasks import Task, applies, labels_of

_FILE = Path(__file__).parents[2] / "docs" / "data" / "few-labels-fractions.csv"
_SETS = (
    "20news-zipf-0.5,20news-zipf-0.8,20news-zipf-1.2,cora-zipf-0.5,cora-zipf-0.8,cora-zipf-1.2,reuters-topics,"
    "reuters-r8,20news-bydate,webkb4-stemmed,20news-rec,cora-machine-learning,reuters-economy,waveform-generated,"
    "g50c,keel-heart,keel-pima,keel-wdbc,ssl-digit1,ssl-usps,ssl-g241c,pcmac,sms-spam,svmlight-reuters-acq,"
    "20news-hockey-alone,reuters-crude-alone,webkb4-course-alone"
)
_DRAWS = "even,random,smallest-2,even-half,random-half,even-twice,random-twice"
_HEADING, _FOLLOWING = "## Told the fractions", "## Columns of the data"
_OF_ANSWERS, _OF_COUNTS = 5.0, 0.5
"""documents, and labels, of each class that are added to those that the simple estimates count"""
_SLACK, _TOLD_RANDOM, _TOLD_OTHER = 0.01, 0.04, 0.08
"""errors by which a run may be worse than the supervised SVM or than told the simple estimate; and than told the true
fractions, with random labels and others"""


class Line(NamedTuple):
    """Errors of a run, and total variations from the true fractions; NaN where there is no such estimate."""

    set: str
    draw: str
    seed: int
    auto: float
    svm: float
    told_simple: float
    told_true: float
    variation: float
    simple_variation: float
    confidence: str

    @property
    def random(self) -> bool:
        """Whether labels were drawn at random."""
        return self.draw.startswith("random")


def line_of(task: Task, results: Results, threads: int = 1) -> Line:
    """All measures of a task."""
    bench, labels, data = Bench(task, results, threads), labels_of(task), documents(task.name)
    n_classes = len(data.classes)
    auto, svm = bench.auto(labels), bench.supervised(labels)
    true = class_fractions(np.delete(data.class_indices, labels.positions), n_classes)
    if task.draw.startswith("random"):
        simple = _shares(labels.counts(n_classes) + _OF_COUNTS)
    else:
        simple = _shares(np.asarray(svm.answers) + _OF_ANSWERS)
    counted = task.draw.startswith(("random", "even"))
    assert auto.variation is not None
    return Line(
        *task,
        auto.error,
        svm.error,
        bench.told(labels, simple).error if counted else np.nan,
        bench.told(labels, true).error,
        auto.variation,
        total_variation(simple, true) if counted else np.nan,
        auto.confidence,
    )


def _shares(counts: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(counts / counts.sum())


def figures_of(lines: Sequence[Line]) -> list[Figure]:
    """The figures of the runs, each beside its bound."""
    random, even = ([line for line in lines if line.draw.startswith(draw)] for draw in ("random", "even"))
    told = [line for line in lines if not np.isnan(line.told_simple)]
    others = [line for line in lines if not line.random]
    return [
        _beyond("the supervised SVM", [(line, line.auto - line.svm) for line in lines], _SLACK),
        _beyond("told the simple estimate", [(line, line.auto - line.told_simple) for line in told], _SLACK),
        _beyond("told the truth, random labels", [(line, line.auto - line.told_true) for line in random], _TOLD_RANDOM),
        _beyond("told the truth, others", [(line, line.auto - line.told_true) for line in others], _TOLD_OTHER),
        _beyond(
            "total variation of the counts, random labels",
            [(line, line.variation - line.simple_variation) for line in random],
            0.0,
        ),
        *(
            Figure(
                f"mean error, {draw} labels (SVM {np.mean([line.svm for line in own]):.3f}, told the simple "
                f"estimate {np.mean([line.told_simple for line in own]):.3f}, the truth "
                f"{np.mean([line.told_true for line in own]):.3f})",
                float(np.mean([line.auto for line in own])),
                float(np.mean([min(line.svm, line.told_simple) for line in own])),
                "",
            )
            for draw, own in (("random", random), ("even", even))
            if own
        ),
    ]


def _beyond(what: str, gaps: Sequence[tuple[Line, float]], bound: float) -> Figure:
    worst, value = max(gaps, key=lambda each: each[1])
    count = sum(gap > bound for _, gap in gaps)
    return Figure(
        f"beyond {what}; more: {count} of {len(gaps)}; worst: {worst.set}, {worst.draw}, seed {worst.seed}",
        value,
        bound,
        "",
    )


def section(file: Path = _FILE) -> str:
    """The section of ``docs/few-labels.md`` by the runs of a file; nothing where there is none."""
    if not file.exists():
        return ""
    with file.open(newline="") as opened:
        lines = [_read(each) for each in csv.DictReader(opened)]
    note = (
        f"{len(lines)} runs on {len({line.set for line in lines})} sets ([data/{file.name}](data/{file.name}), by "
        "`python -m benchmarks.panel.fractions`). The simple estimate is, with random labels, their counts and half a "
        "label a class; with even ones the answers of the tuned supervised SVM, counted, and five documents a class. "
        "Told an estimate, `auto` takes it as `class_fractions`.\n\n"
    )
    heads = ["`auto`, no option given; error or total variation", "worst", "to reach", ""]
    return f"{_HEADING}\n\n{note}{table(heads, [figure.row()[:4] for figure in figures_of(lines)])}\n"


def _read(fields: dict[str, str]) -> Line:
    texts = {"set", "draw", "confidence"}
    values: dict[str, Any] = {key: value if key in texts else float(value) for key, value in fields.items()}
    return Line(**values | {"seed": int(fields["seed"])})


def write_section(page: Path) -> None:
    """Put the section into the page, in the place of the last one or before the columns of the data."""
    before, _, after = page.read_text().partition(_FOLLOWING)
    page.write_text(before.partition(_HEADING)[0] + section() + "\n" + _FOLLOWING + after)


def main(arguments: list[str]) -> None:
    given = options(__doc__, arguments, sets=_SETS, draws=_DRAWS, seeds=2, jobs=1, out=_FILE)
    todo = [
        Task(name, draw, seed)
        for seed in range(given.seeds)
        for name in given.sets.split(",")
        for draw in given.draws.split(",")
        if applies(draw, documents(name))
    ]
    lines = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for line in pool.map(partial(line_of, results=Results()), todo):
            lines.append(line)
            print(*(f"{each:.3f}" if isinstance(each, float) else each for each in line), file=sys.stderr, flush=True)
    with given.out.open("w", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(Line._fields)
        writer.writerows([f"{each:.4f}" if isinstance(each, float) else each for each in line] for line in lines)
    if given.out == _FILE:
        write_section(_FILE.parents[1] / "few-labels.md")


if __name__ == "__main__":
    main(sys.argv[1:])
