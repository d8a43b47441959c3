"""Shared by all benchmarks: timing, units, the machine's description, tables.

Ratios in one run, never a bare time.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

T = TypeVar("T")

DOCS = Path(__file__).parents[1] / "docs"

_COLUMNS = 120
"""of the prose of a page"""
_NOTES = "\n## What to make of it"
"""title of the notes of a page, which goes on with their date"""


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs after a warm-up."""

    seconds: tuple[float, ...]
    processor_seconds: tuple[float, ...]
    """of all threads: what others do on the machine changes them little"""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance between the fastest and the slowest, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median


def timed(work: Callable[[], T], repeats: int = 3, warm_ups: int = 1) -> tuple[T, Timing]:
    """The last answer of ``work`` and how long it took."""
    for _ in range(warm_ups):
        work()
    seconds, processor_seconds = [], []
    for _ in range(repeats):
        start, processor_start = time.perf_counter(), time.process_time()
        answer = work()
        seconds.append(time.perf_counter() - start)
        processor_seconds.append(time.process_time() - processor_start)
    return answer, Timing(tuple(seconds), tuple(processor_seconds))


def options(doc: str | None, arguments: Sequence[str] | None = None, **defaults: Any) -> argparse.Namespace:
    """The options of a command: one for each default, of its type. ``False`` is a switch, a tuple a list of names."""
    parser = argparse.ArgumentParser(description=doc)
    for name, default in defaults.items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(default, tuple):
            parser.add_argument(f"--{name}", nargs="*", default=default)
        else:
            parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args(arguments)


def unit(matrix: sp.csr_matrix, repeats: int = 9) -> float:
    """Seconds of one ``X @ p`` and one ``X.T @ z`` by SciPy in float64 on one thread: the measure of all solvers on
    this data.
    """
    matrix = matrix.astype(np.float64)
    rng = np.random.default_rng(0)
    vector, weights, transposed = rng.standard_normal(matrix.shape[1]), rng.standard_normal(matrix.shape[0]), matrix.T
    with threadpool_limits(1):
        forward, backward = timed(lambda: matrix @ vector, repeats)[1], timed(lambda: transposed @ weights, repeats)[1]
    return forward.median + backward.median


def class_indices_of(y: NDArray[Any], labeled: NDArray[np.int64]) -> tuple[NDArray[np.int32], list[int]]:
    """Class indices with -1 for the rows that are not labeled, and the classes, for core.train.train."""
    classes = np.unique(y)
    class_indices = np.full(len(y), -1, np.int32)
    class_indices[labeled] = np.searchsorted(classes, y[labeled])
    return class_indices, classes.tolist()


@cache
def commit() -> str:
    """The commit of the code that runs; empty where it is not known."""
    try:
        command = ["git", "rev-parse", "--short", "HEAD"]
        return subprocess.run(
            command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine() -> str:
    """One line on the machine of the measurements."""
    model = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB; Python "
        f"{platform.python_version()}, {libraries}"
    )


class Log:
    """Prints the lines of a long run with the seconds since it began, and keeps the load of the machine, other programs
    included, at each.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.loads = [os.getloadavg()[0]]
        """load averages of a minute, as the system reports them"""

    def __call__(self, line: str) -> None:
        """Print a line."""
        self.loads.append(os.getloadavg()[0])
        print(f"{self.seconds:4.0f} s: {line}", flush=True)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._began

    @property
    def load(self) -> str:
        """A sentence."""
        return f"The load of the machine, other programs included, was {min(self.loads):.1f} to {max(self.loads):.1f}."


def apart(module: str, *arguments: object) -> dict[str, Any]:
    """The object, JSON, in the last line that a module prints, run with these arguments in a process of its own."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return dict(json.loads(said.splitlines()[-1]))


class Figure(NamedTuple):
    """One measured number, its bound, and from the same run the numbers of a rival and of a server that computes
    nothing, where there are some."""

    what: str
    value: float
    bound: float
    unit: str
    at_most: bool = True
    rival: float | None = None
    floor: float | None = None

    @property
    def reached(self) -> bool:
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def row(self) -> list[str]:
        """Name, value, bound, verdict, the rival's value, how many times better than the rival, the floor."""
        bound = f"{'≤' if self.at_most else '≥'} {number(self.bound)}"
        cells = [self.what, f"**{number(self.value)}** {self.unit}", bound, "reached" if self.reached else "MISSED"]
        if self.rival is None:
            return [*cells, "", "", ""]
        ratio = self.rival / self.value if self.at_most else self.value / self.rival
        return [*cells, number(self.rival), f"{ratio:.1f}", "" if self.floor is None else number(self.floor)]


def number(value: float) -> str:
    """At most three digits that mean something, and none lost before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def write(name: str, text: str) -> None:
    """Print a page and keep it in ``docs/``; the notes at its end, which are dated and written by hand, stay."""
    path = DOCS / name
    _, title, notes = (path.read_text() if path.exists() else "").partition(_NOTES)
    text = wrapped(text)
    print(text)
    path.write_text(text.rstrip() + "\n" + title + notes)


def put_section(name: str, text: str) -> None:
    """Print a section, which begins with its title (``## …``), and put it into a page of ``docs/``: in the place of the
    former one, else at the end.
    """
    print(text)
    path = DOCS / name
    head, *found = path.read_text().split("\n## ")
    sections = {each.splitlines()[0]: each.strip() for each in (*found, text.strip().removeprefix("## "))}
    path.write_text(wrapped("\n\n## ".join([head.strip(), *sections.values()]) + "\n"))


def add_row(name: str, title: str, made: str, heads: Sequence[str], row: Sequence[str]) -> None:
    """Add a row to the table of a section of a page, which says how it was made."""
    page = (DOCS / name).read_text()
    rows = [
        line.strip("| ").split(" | ")
        for line in page.partition(f"{title}\n")[2].partition("\n## ")[0].splitlines()
        if line.startswith("| ")
    ][2:]
    put_section(name, f"{title}\n\n{made}\n\n" + table(heads, [*rows, list(row)]))


def wrapped(page: str) -> str:
    """The page with prose of at most 120 columns: whole sentences on a line as far as they fit.

    Tables, pictures, code and titles stay.
    """
    lines, code = [], False
    for line in page.split("\n"):
        code ^= line.startswith("```")
        prose = not code and not line.startswith("    ") and not line.lstrip().startswith(("|", "!", "#"))
        lines += _wrapped(line) if prose and len(line) > _COLUMNS else [line]
    return "\n".join(lines)


def _wrapped(line: str) -> list[str]:
    indent, lines = "  " if line.startswith("- ") else "", list[str]()
    for sentence in re.split(r"(?<=[.]) (?=[A-Z`*])", line):
        if lines and len(lines[-1]) + 1 + len(sentence) <= _COLUMNS:
            lines[-1] += f" {sentence}"
        else:
            first = indent if lines else ""
            lines += textwrap.wrap(
                sentence,
                _COLUMNS,
                initial_indent=first,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return lines


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
