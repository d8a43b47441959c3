"""Runs solvers: executes the passes over the data that they ask for.

A solver is a generator. It yields what it wants done with the data (Product, Scores, Adjoint) or something to tell (Report), is sent the
answer, and returns its Result. The sweeper alone touches the rows: it cuts every pass into slices of a bounded number of nonzeros, shares a
slice among threads, and between slices asks the observer whether to go on; then it throws Stopped into the solver, which returns its
best iterate. So no solver knows of threads, slices or cancellation, and many solvers over the same rows can go through one pass.

Results do not depend on timing: which thread adds up which rows is fixed.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from core.blocks import WIDTH
from core.passes import Adjoint, Passes, Product, Scores, Vector
from core.progress import Observer, TracePoint
from core.result import Result
from core.rows import SparseRows
from core.watch import Stopped, Watch

__all__ = ["Adjoint", "Product", "Report", "Request", "Scores", "Steps", "Stopped", "Sweeper", "Vector"]

_SIDE_BY_SIDE = WIDTH


class Report(NamedTuple):
    """Something to tell: a TracePoint without its time."""

    phase: str
    iteration: int
    stage_objective: float
    objective: float | None
    """None: the stage's own"""
    fraction: float
    share: float = 0.0
    """how much of the whole work this phase is, for who can tell how far within it things are"""


Request = Product | Scores | Adjoint | Report
Steps = Generator[Request, Any, Result]


@dataclass(eq=False)
class _Run:
    """One solver, waiting, under way or at its end."""

    prefix: str
    begin: Callable[[], Steps]
    steps: Steps | None = None
    trace: list[TracePoint] = field(default_factory=list)
    fraction: float = 0.0
    passes: float = 0.0
    request: Request | None = None
    result: Result | None = None


class Sweeper:
    """The solvers over one matrix; a context manager."""

    def __init__(self, rows: SparseRows, *, threads: int | None = None, observer: Observer | None = None) -> None:
        self._watch = Watch(observer)
        self._passes = Passes(rows, threads, self._watch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._passes.close()

    def run(self, solvers: dict[str, Callable[[], Steps]]) -> list[Result]:
        """The results of solvers over these rows; each key prefixes the phases of its solver.

        As many as fill a block run side by side; when one ends the next begins, so that memory does not grow with their number.
        """
        runs = [_Run(prefix, begin) for prefix, begin in solvers.items()]
        try:
            while active := [run for run in runs if run.result is None][:_SIDE_BY_SIDE]:
                for run in active:
                    self._begin(run)
                self._round([run for run in active if run.result is None])
                self._watch.latest = self._watch.latest._replace(fraction=sum(run.fraction for run in runs) / len(runs))
        except Stopped as stop:
            for run in runs:
                self._stop(run, stop)
        return [self._finished(run) for run in runs]

    def _round(self, runs: list[_Run]) -> None:
        """Answer every solver's request; products go through the data together."""
        together = [run for run in runs if isinstance(run.request, Product)]
        for run in runs:
            if run not in together:
                self._resume(run, self._answer(run))
                self._watch()
        answers = self._passes.products([run.request for run in together if isinstance(run.request, Product)])
        for run, answer in zip(together, answers, strict=True):
            assert isinstance(run.request, Product)
            run.passes += _share(run.request.weights)
            self._resume(run, answer)
        self._watch()

    def _begin(self, run: _Run) -> None:
        """Let a solver come to its first request, if it has not."""
        if run.steps is None:
            run.steps = run.begin()
            self._resume(run, None)

    def _resume(self, run: _Run, answer: Any) -> None:
        """Let a solver go on to its next request or its end."""
        assert run.steps is not None
        try:
            run.request = run.steps.send(answer)
        except StopIteration as end:
            self._end(run, end.value)

    def _end(self, run: _Run, result: Result) -> None:
        """Keep a solver's result and nothing else of it."""
        run.result, run.fraction, run.request, run.steps = result, 1.0, None, None

    def _answer(self, run: _Run) -> Any:
        match run.request:
            case Report():
                self._tell(run, run.request)
            case Adjoint(weights):
                run.passes += _share(weights) / 2
                return self._passes.adjoint(run.request)
            case Scores(_, skipped):
                run.passes += (1 - _share(skipped)) / 2
                self._passes.scores(run.request)
        return None

    def _stop(self, run: _Run, stop: Stopped) -> None:
        """Let the solver return its best iterate; what it still tells is kept, what it still wants computed is refused."""
        self._begin(run)
        while run.steps is not None:
            try:
                request = run.steps.throw(stop)
                while isinstance(request, Report):
                    self._tell(run, request)
                    request = run.steps.send(None)
            except StopIteration as end:
                self._end(run, end.value)

    def _finished(self, run: _Run) -> Result:
        assert run.result is not None
        return Result(**{**vars(run.result), "trace": tuple(run.trace), "passes": run.passes})

    def _tell(self, run: _Run, report: Report) -> None:
        run.fraction = report.fraction
        objective = report.stage_objective if report.objective is None else report.objective
        self._watch.latest = TracePoint(run.prefix + report.phase, *report[1:3], objective, report.fraction, self._watch.seconds)
        run.trace.append(self._watch.latest)


def _share(weights: Vector) -> float:
    """The share of the rows that a pass reads."""
    return float(np.count_nonzero(weights)) / max(1, len(weights))
