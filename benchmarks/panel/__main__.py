"""``python -m benchmarks.panel [--sets a,b] [--seeds 5] [--jobs 1]``: runs the panel, prints it and writes ``docs/few-labels.md``."""

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from benchmarks.base import write
from benchmarks.panel.methods import Score, scores
from benchmarks.panel.page import page
from benchmarks.panel.sets import LABELS, Task, documents, tasks


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel")
    parser.add_argument("--sets", default=",".join(LABELS), help="names, with commas between")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time")
    parser.add_argument("--dry", action="store_true", help="print the page and leave docs/ alone")
    given = parser.parse_args(arguments)
    names = given.sets.split(",")
    found: dict[tuple[str, str, int], dict[str, Score]] = {}
    for task, score in _run(list(tasks(names, given.seeds)), given.jobs):
        found[task.name, task.draw, task.seed] = score
        errors = "  ".join(f"{method} {each.error:.3f}" for method, each in score.items())
        auto = score["auto"]
        figures = f"TV {auto.variation:.3f}  ECE {auto.calibration:.3f}  {auto.chosen}"
        print(f"{task.name} {task.draw} {task.seed}: {errors}  {figures}", file=sys.stderr, flush=True)
    text = page(found, given.seeds)
    if given.dry:
        print(text)
    else:
        write("few-labels.md", text)


def _run(todo: list[Task], jobs: int) -> Iterator[tuple[Task, dict[str, Score]]]:
    for name in {task.name for task in todo}:
        documents(name)  # vectorised here, once, and not in every process
    if jobs == 1:
        yield from ((task, scores(task)) for task in todo)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from zip(todo, pool.map(_alone, todo), strict=True)


def _alone(task: Task) -> dict[str, Score]:
    return scores(task, threads=1)


if __name__ == "__main__":
    main(sys.argv[1:])
