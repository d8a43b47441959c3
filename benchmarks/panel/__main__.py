"""``python -m benchmarks.panel [--sets a,b] [--draws a,b] [--seeds 5] [--jobs 1] [--minutes N]``: runs the panel,
writes ``docs/few-labels.md`` and its data.

Results are kept in ``build/panel``: a rerun goes on where the last one stopped, and computes anew what rests on code
that has changed.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.base import write
from benchmarks.panel.fractions import section
from benchmarks.panel.page import FIGURE, MEANS, draw_figure, page, write_means
from benchmarks.panel.results import OutOfTime, Results
from benchmarks.panel.runs import Run, run_of
from benchmarks.panel.sets import LABELS, documents
from benchmarks.panel.tasks import DRAWS, Task, tasks

_DOCS = Path(__file__).parents[2] / "docs"


def main(arguments: list[str]) -> None:
    given = _parser().parse_args(arguments)
    todo = list(tasks(given.sets.split(","), given.draws.split(","), given.seeds))
    deadline = None if given.minutes is None else time.time() + 60 * given.minutes
    runs = []
    for run in _run(todo, given.jobs, deadline):
        if run is not None:
            runs.append(run)
            print(_line(run), file=sys.stderr, flush=True)
    text = page(runs, len(todo), given.seeds, section())
    if given.dry:
        print(text)
    else:
        draw_figure(runs, _DOCS / FIGURE)
        write_means(runs, _DOCS / MEANS)
        write("few-labels.md", text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel")
    parser.add_argument("--sets", default=",".join(LABELS), help="names, with commas between")
    parser.add_argument("--draws", default=",".join(DRAWS), help="names, with commas between")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time; all of them share the cores")
    parser.add_argument(
        "--minutes", type=float, help="after so many nothing new is computed, and the page has what there is"
    )
    parser.add_argument("--dry", action="store_true", help="print the page and leave docs/ alone")
    return parser


def _run(todo: list[Task], jobs: int, deadline: float | None) -> Iterator[Run | None]:
    """The run of each task, None where there was no time for it."""
    for name in {task.name for task in todo}:
        documents(name)  # vectorised here, once, and not in every process
    threads = max(1, len(os.sched_getaffinity(0)) // jobs)
    one = partial(_one, Results(deadline), threads)
    if jobs == 1:
        yield from map(one, todo)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, todo)


def _one(results: Results, threads: int, task: Task) -> Run | None:
    try:
        return run_of(task, results, threads)
    except OutOfTime:
        return None


def _line(run: Run) -> str:
    errors = "  ".join(f"{method} {score.error:.3f}" for method, score in run.scores.items())
    auto = run.scores["auto"]
    return (
        f"{run.task.name} {run.task.draw} {run.task.seed}: {errors}  TV {auto.variation:.3f}  ECE "
        f"{auto.calibration:.3f}  {auto.chosen}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
