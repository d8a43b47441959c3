"""Runs solvers side by side: decides which of them is answered next, and with whom.

The engine alone touches the rows (core.engine.passes). It cuts every pass into slices of a bounded number of nonzeros
and shares parts among threads. Between slices it asks the observer whether to go on; if not, it throws Stopped into the
solver, which returns its best iterate or, if it has none, lets Stopped through. So no solver knows of threads or
slices, and many solvers over the same rows can go through one pass.

Results do not depend on timing: which thread adds up which rows is fixed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, Self

from core.documents.rows import SparseRows
from core.engine.kernel_service import KernelService
from core.engine.passes import Engine
from core.engine.requests import (
    Adjoint,
    Adjoints,
    AllScores,
    Barrier,
    Cut,
    KernelRequest,
    Product,
    Report,
    Request,
    Scores,
    Steps,
    Within,
    Yield,
    cost,
)
from core.numerics.width import WIDTH, most_at_a_time
from core.problem import Result
from core.progress import WHOLE, Observer, Phase, Span, Stopped, TracePoint, Watch


@dataclass(eq=False)
class _Run:
    """One solver, waiting, under way or at its end."""

    place: int
    """among the runs over these rows"""
    purpose: Phase
    begin: Callable[[], Steps]
    steps: Steps | None = None
    trace: list[TracePoint] = field(default_factory=list)
    fraction: float = 0.0
    passes: float = 0.0
    n_products: int = 0
    """products that it was sent together with others"""
    request: Request | None = None
    result: Result | None = None

    def start(self) -> None:
        """Come to the first request, if that has not been done."""
        if self.steps is None and self.result is None:
            self.steps = self.begin()
            self.resume(None)

    def resume(self, answer: Any) -> None:
        """Go on to the next request or the end."""
        assert self.steps is not None
        try:
            self.request = self.steps.send(answer)
        except StopIteration as end:
            self.end(end.value)

    def end(self, result: Result) -> None:
        """Keep the result and nothing else of the solver."""
        self.result, self.fraction, self.request, self.steps = result, 1.0, None, None


@dataclass(eq=False)
class PassCounter:
    """The passes that several schedulers have made together."""

    passes: float = 0.0
    """over the nonzeros, partial ones counted by their share"""


@dataclass(eq=False)
class _Progress:
    """The progress of all runs together."""

    span: Span
    runs: list[_Run]

    @property
    def fraction(self) -> float:
        """Of the whole work; the sum is exact, so that it never falls for rounding."""
        return self.span.position(math.fsum(run.fraction for run in self.runs) / len(self.runs))


class Scheduler:
    """The solvers over one matrix; a context manager.

    ``watch`` is that of the whole work; without one, ``observer`` is asked. ``counter`` counts passes beside other
    schedulers. ``engine`` answers over the rows; by default they are in memory.
    """

    def __init__(
        self,
        rows: SparseRows,
        *,
        engine: Engine | None = None,
        threads: int | None = None,
        observer: Observer | None = None,
        max_model_bytes: int | None = None,
        watch: Watch | None = None,
        counter: PassCounter | None = None,
    ) -> None:
        self._watch = Watch(observer) if watch is None else watch
        self._passes = (engine or Engine()).over(rows, threads, self._watch)
        self._kernels = KernelService(rows, self._passes, self._watch, max_model_bytes)
        self._counter = PassCounter() if counter is None else counter
        self._most = most_at_a_time(rows.n_rows, rows.n_features)
        self._progress = _Progress(WHOLE, [])
        self._reporting = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._passes.close()

    def run(self, solvers: dict[Phase, Callable[[], Steps]], span: Span = WHOLE) -> list[Result]:
        """The results of solvers over these rows; each key has the purpose of its solver. They take a ``span`` of the
        whole work.

        As many as fill a block run side by side; when one ends the next begins, so that memory does not grow with their
        number. Once few are left that wait for products, all of them run side by side, by turns. A stop ends all: the
        results are then their best iterates, with status cancelled. Raises Stopped if a solver has none.
        """
        runs = [_Run(place, purpose, begin) for place, (purpose, begin) in enumerate(solvers.items())]
        self._progress = _Progress(span, runs)
        self._watch.latest = self._watch.latest._replace(fraction=span.start)
        most = WIDTH
        try:
            while left := [run for run in runs if run.result is None]:
                moving = [run for run in left if not isinstance(run.request, Barrier)]
                if len(moving) <= self._most and all(isinstance(run.request, Product) for run in moving[:WIDTH]):
                    most = self._most
                for run in moving[:most]:
                    run.start()
                self._round([run for run in left if run.steps is not None])
                self._watch.latest = self._watch.latest._replace(fraction=self._progress.fraction)
        except Stopped as stop:
            for run in runs:
                self._stop(run, stop)
            if any(run.result is None for run in runs):
                raise
        finally:
            self._counter.passes += sum(run.passes for run in runs)
        return [replace(run.result, trace=tuple(run.trace), passes=run.passes) for run in runs if run.result]

    def _round(self, runs: list[_Run]) -> None:
        """Answer all requests but products, cuts together; or one block of products where all solvers want a product.

        The block goes through the data together. It takes the solvers with the fewest products so far, so that blocks
        are full until the last solvers end.

        A solver that waits at a barrier holds nobody up.
        """
        for barrier in dict.fromkeys(run.request for run in runs if isinstance(run.request, Barrier)):
            waiting = [run for run in runs if run.request is barrier]
            if len(waiting) == barrier.n_solvers:
                self._resume(waiting, [barrier.decide()] * len(waiting))
                return
        runs = [run for run in runs if not isinstance(run.request, Barrier)]
        if all(isinstance(run.request, Product) for run in runs):
            runs = sorted(runs, key=lambda run: run.n_products)[:WIDTH]
            for run in runs:
                run.n_products += 1
            products = [run.request for run in runs if isinstance(run.request, Product)]
            self._count_passes(runs)
            self._resume(runs, self._passes.products(products))
        else:
            others = [run for run in runs if not isinstance(run.request, Product)]
            cutting = [run for run in others if isinstance(run.request, Cut)]
            self._count_passes(cutting)
            cuts = iter(self._passes.cuts([run.request for run in cutting if isinstance(run.request, Cut)]))
            self._resume(others, [next(cuts) if isinstance(run.request, Cut) else self._answer(run) for run in others])

    @staticmethod
    def _count_passes(runs: list[_Run]) -> None:
        """Count the passes that the requests of solvers take."""
        for run in runs:
            for request in run.request.requests if isinstance(run.request, AllScores | Adjoints) else [run.request]:
                run.passes += cost(request)

    def _resume(self, runs: list[_Run], answers: list[Any]) -> None:
        """Let solvers go on side by side, each until it wants all threads."""
        if len(runs) > 1:
            works = [partial(self._go_on, run, answer) for run, answer in zip(runs, answers, strict=True)]
            self._passes.side_by_side(works, self._watch)
        else:
            for run, answer in zip(runs, answers, strict=True):
                run.resume(answer)
            self._watch()

    def _go_on(self, run: _Run, answer: Any) -> None:
        """Let one solver go on by the calling thread, which also answers its light requests."""
        run.resume(answer)
        while self._is_for_one(run.request) and not self._watch.stopped:
            run.resume(self._answer(run, alone=True))
            self._watch()

    def _is_for_one(self, request: Request | None) -> bool:
        """Whether one thread is to answer a request, while others answer other solvers."""
        if isinstance(request, Product):
            return self._passes.is_light(request)
        return isinstance(request, Adjoint | Adjoints | Scores | AllScores | Within | Report | Yield)

    def _answer(self, run: _Run, alone: bool = False) -> Any:
        """The answer to a solver; ``alone``: by the calling thread, while others are at something else."""
        if isinstance(run.request, Report):
            self._report(run, run.request)
        if isinstance(run.request, Report | Yield):
            return None
        self._count_passes([run])
        if isinstance(run.request, KernelRequest):
            return self._kernels.answer(run.request, run.purpose)
        return self._passes.answer(run.request, alone)

    def _stop(self, run: _Run, stop: Stopped) -> None:
        """Let the solver return its best iterate, if it has one; its last reports are kept, its requests refused."""
        run.start()
        while run.steps is not None:
            try:
                request = run.steps.throw(stop)
                while isinstance(request, Report):
                    self._report(run, request)
                    request = run.steps.send(None)
            except StopIteration as end:
                run.end(end.value)
            except Stopped:
                run.steps = None

    def _report(self, run: _Run, report: Report) -> None:
        objective = report.stage_objective if report.objective is None else report.objective
        with self._reporting:  # or a thread would report less than another did before
            # the guess of a solver may fall; a reported fraction does not
            run.fraction = max(run.fraction, report.fraction)
            self._watch.latest = TracePoint(
                report.phase.within(run.purpose),
                *report[1:3],
                objective,
                self._progress.fraction,
                self._watch.seconds,
                report.stages,
            )
            # as if one run followed the other: what is kept must not depend on how far others are at this moment
            own = (run.place + run.fraction) / len(self._progress.runs)
            run.trace.append(self._watch.latest._replace(fraction=self._progress.span.position(own)))
