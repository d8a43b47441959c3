"""However large the data are, the observer is asked after little work, and little is done once it has said stop.

Work is counted, never timed: numbers that the compiled loops go over. What a slice of that size takes on a machine is
in ``docs/benchmarks.md``.
"""

import inspect
import pkgutil
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import core
from core import progress
from core.documents import reorder as columns
from core.documents import value_scale
from core.documents.rows import SparseRows
from core.engine import passes
from core.kernels import cache, gamma, gram, products
from core.kernels.function import Kernel
from core.optimizers import smo
from core.problem import Status
from core.progress import TracePoint
from core.registry import ALGORITHMS, OFFERED
from core.selection import data
from core.train import TrainingContext, TrainingTask, train
from tests.core.problems import labeled

SLICE = 1 << 13
WIDTH = 400
"""features a row"""
MOST = 4 * SLICE
"""that may be done between two questions, well below the 60,000 nonzeros: slices, a kernel row, and what goes over all
columns or rows once"""


def between(indptr: Any, start: int, stop: int) -> int:
    return int(indptr[stop] - indptr[start]) + stop - start


def products_of(indptr: Any, indices: Any, starts: Any, positions: Any) -> int:
    """Every nonzero of some rows meets all nonzeros of its column."""
    return sum(int(np.diff(starts)[indices[indptr[row] : indptr[row + 1]]].sum()) for row in positions)


COUNTED: dict[str, Callable[[dict[str, Any]], int]] = {
    "advance": lambda given: 2 * given["steps"] * len(given["alpha"]),
    "multiply_rows": lambda given: products_of(
        **{name: given[name] for name in ("indptr", "indices", "starts", "positions")}
    ),
    "add_rows": lambda given: len(given["chosen"]) * (given["stop"] - given["start"]),
    "_add_squares": lambda given: len(given["columns"]) + len(given["indptr"]),
    "gather_rows": lambda given: between(given["new_indptr"], given["start"], given["stop"]),
}
"""the work of those loops of which it is not the rows or places from ``start`` to ``stop``, nor all that they are
given"""


def work_of(name: str, given: dict[str, Any]) -> int:
    if name in COUNTED:
        return COUNTED[name](given)
    if "start" in given:
        return (
            between(given["indptr"], given["start"], given["stop"])
            if "indptr" in given
            else int(given["stop"] - given["start"])
        )
    return max(len(array) for array in given.values() if isinstance(array, np.ndarray))


class Meter:
    """Counts the work of compiled loops, in whatever thread."""

    def __init__(self) -> None:
        self.work = 0
        self._guard = threading.Lock()

    def over(self, loop: Any) -> Callable[..., Any]:
        """The loop, counted."""
        name, names = loop.py_func.__name__, list(inspect.signature(loop.py_func).parameters)

        def counted(*given: Any) -> Any:
            with self._guard:
                self.work += work_of(name, dict(zip(names, given, strict=True)))
            return loop(*given)

        return counted


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    """Every compiled loop that Python calls is counted; slices are small, and the observer is asked whenever it might
    be.
    """
    for found in pkgutil.walk_packages(core.__path__, "core."):
        import_module(found.name)
    made, modules = Meter(), [module for name, module in sys.modules.items() if name.startswith("core.")]
    loops = {value for module in modules for value in vars(module).values() if hasattr(value, "py_func")}
    # those that others call are part of these, and compiled with them
    inner = {id(loop.py_func.__globals__.get(name)) for loop in loops for name in loop.py_func.__code__.co_names}
    counted = {loop: made.over(loop) for loop in loops if id(loop) not in inner}
    for module in modules:
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func") and value in counted:
                monkeypatch.setattr(module, name, counted[value])
    for where, name in (
        (passes, "SLICE"),
        (columns, "_SLICE"),
        (products, "SLICE"),
        (gram, "SLICE"),
        (gamma, "SLICE"),
        (value_scale, "_SLICE"),
        (smo, "_SLICE"),
        (cache, "_MOST_UNCACHED"),
        (data, "_SLICE"),
    ):
        monkeypatch.setattr(where, name, SLICE)
    monkeypatch.setattr(gram, "_BLOCK_NANOSECONDS", float(SLICE))
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    return made


class Listener:
    """Notes how much had been done whenever it was asked, and asks to stop at one call."""

    def __init__(self, meter: Meter, stop_at: int = -1) -> None:
        self.heard, self._meter, self._stop_at = [meter.work], meter, stop_at

    def __call__(self, point: TracePoint, /) -> bool:
        self.heard.append(self._meter.work)
        return len(self.heard) - 1 == self._stop_at

    @property
    def done(self) -> list[int]:
        """The work before each question, and that between the last and now."""
        return [after - before for before, after in pairwise([*self.heard, self._meter.work])]

    @property
    def total(self) -> int:
        """All work so far."""
        return self._meter.work - self.heard[0]


def wide() -> tuple[SparseRows, Any]:
    """150 rows of WIDTH features out of six times as many; the first features tell two classes apart; 50 rows are
    labeled.
    """
    chance = np.random.default_rng(0)
    n = 150
    truth = chance.random(n) < 0.4
    indices = chance.integers(0, 6, (n, WIDTH)) + 6 * np.arange(WIDTH)
    indices[:, :40] = indices[:, :40] // 6 * 6 + chance.integers(0, 3, (n, 40)) + 3 * truth[:, None]
    rows = SparseRows(
        np.arange(0, n * WIDTH + 1, WIDTH),
        indices.reshape(-1).astype(np.uint32),
        np.full(n * WIDTH, WIDTH**-0.5, np.float32),
        6 * WIDTH,
    )
    return rows, np.where(np.arange(n) < 50, truth, -1).astype(np.int32)


@pytest.mark.parametrize("name", OFFERED)
def test_little_is_done_between_two_questions_and_after_a_stop(meter: Meter, name: str) -> None:
    """Fails when a pass over the data, a block of kernel rows or a run of steps is made without asking in between."""
    rows, class_indices = wide()
    options = labeled(name) if name in ALGORITHMS else {}
    listener = Listener(meter)
    whole = train(
        TrainingTask(rows, class_indices, ["a", "b"], name, options), TrainingContext(threads=1, observer=listener)
    )
    assert whole.status is not Status.CANCELLED
    assert listener.total > 15 * rows.n_nonzeros, "there was enough to be silent for"
    *before, last, after = listener.done
    assert max(before) <= MOST
    # the training is over; the rows that its model keeps are copied once before that is told
    assert last <= rows.n_nonzeros + rows.n_rows
    assert after == 0
    for stop_at in (1, len(before) // 50, len(before) // 4):
        stopping = Listener(meter, max(1, stop_at))
        training = train(
            TrainingTask(rows, class_indices, ["a", "b"], name, options), TrainingContext(threads=1, observer=stopping)
        )
        assert training.status is Status.CANCELLED
        *before, last = stopping.done
        assert len(before) == max(1, stop_at), "it is not asked again"
        assert max(before) <= MOST
        assert last <= rows.n_nonzeros + 2 * rows.n_rows, "the same, and weights of the rows"


def dense() -> SparseRows:
    n, width = 2000, 30
    values = np.random.default_rng(0).standard_normal(n * width).astype(np.float32)
    return SparseRows(np.arange(0, n * width + 1, width), np.tile(np.arange(width, dtype=np.uint32), n), values, width)


PREPARATIONS: dict[str, tuple[int, Callable[[SparseRows, Callable[[], None]], object]]] = {
    "compact": (2, lambda rows, ask: columns.compact(rows, np.arange(rows.n_rows)[::-1], ask)),
    "gathered": (1, lambda rows, ask: columns.gathered(rows, np.arange(rows.n_rows), ask)),
    "feature_scaling": (1, lambda rows, ask: data.scale_features(rows, ask)),
    "gram": (3, lambda rows, ask: gram.Gram(rows, Kernel("rbf", 1.0), None, ask)),
    "scale": (1, lambda rows, ask: gamma.resolve_kernel("rbf", "scale", 3, 0.0, rows, ask)),
}
"""what goes over the nonzeros before any solver begins, in NumPy and thus uncounted, and how often it does at least"""


@pytest.mark.parametrize("make", [dense, lambda: wide()[0]], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", PREPARATIONS)
def test_preparations_ask_at_every_slice_and_end_when_told(
    meter: Meter, name: str, make: Callable[[], SparseRows]
) -> None:
    """Fails when one of their passes is made at once."""
    rows, (n_passes, prepare), asked = make(), PREPARATIONS[name], 0

    def ask() -> None:
        nonlocal asked
        asked += 1
        if asked == last:
            raise progress.Stopped

    last = -1
    prepare(rows, ask)
    assert asked >= n_passes * rows.n_nonzeros // SLICE
    asked, last = 0, asked
    with pytest.raises(progress.Stopped):
        prepare(rows, ask)
