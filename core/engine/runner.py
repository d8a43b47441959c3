"""Runs solvers: executes the passes over the data that they ask for.

A solver is a generator. It yields a request for work on the data (those of core.engine.requests and core.engine.kernel_requests), a Report of where
it is, or a Pause. It is sent the answer, and it returns its Result. The engine alone touches the rows (core.engine.engine). It cuts
every pass into slices of a bounded number of nonzeros and shares parts among threads. Between slices it asks the observer whether to go on; if not,
it throws Stopped into the solver, which returns its best iterate or, if it has none, lets Stopped through. So no solver knows of threads or slices,
and many solvers over the same rows can go through one pass.

Results do not depend on timing: which thread adds up which rows is fixed.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self

from core.documents.rows import SparseRows
from core.engine.engine import Engine, MemoryEngine
from core.engine.kernel_requests import CheckModelSize, KernelRange, KernelRequest, KernelRows, KernelScores, KernelSubset, KernelSums
from core.engine.kernel_service import KernelService
from core.engine.requests import Adjoint, Adjoints, Cut, Product, Scores, Vector, share
from core.numerics.width import WIDTH, most_at_a_time
from core.problem.result import Result
from core.progress import WHOLE, Observer, Part, TracePoint
from core.watch import Stopped, Watch

__all__ = [
    "Adjoint",
    "Adjoints",
    "Cut",
    "Meeting",
    "Pause",
    "Product",
    "Report",
    "Request",
    "Scores",
    "Steps",
    "Stopped",
    "Sweeper",
    "Vector",
    "as_part",
]


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
    stages: int = 0
    """number of stages that the phase is one of, at most; 0 if it is not known"""


class Pause(NamedTuple):
    """Nothing but a moment for other solvers to go on and for the observer to be asked."""


class Meeting(NamedTuple):
    """A barrier of several solvers: all wait until ``n_solvers`` of them have come, and are then sent what ``decide`` returns.

    They request the same object, and must be neighbours among the solvers of a sweeper and fit into one block.
    """

    n_solvers: int
    decide: Callable[[], Any]
    """called once a meeting, by the thread of the sweeper"""


Request = Product | Scores | Adjoint | Adjoints | Cut | KernelRequest | Report | Pause | Meeting
Steps = Generator[Request, Any, Result]


def as_part(steps: Steps, part: Part) -> Steps:
    """A solver that is only a part of what another does: the fractions that it tells become those of the whole."""
    try:
        request = steps.send(None)
        while True:
            if isinstance(request, Report):
                request = request._replace(fraction=part.at(request.fraction))
            try:
                answer = yield request
            except Stopped as stop:
                request = steps.throw(stop)
            else:
                request = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


@dataclass(eq=False)
class _Run:
    """One solver, waiting, under way or at its end."""

    place: int
    """among the runs over these rows"""
    prefix: str
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
class Tally:
    """What several sweepers have done together."""

    passes: float = 0.0
    """over the nonzeros, partial ones counted by their share"""


@dataclass(eq=False)
class _Course:
    """How far runs side by side are together."""

    part: Part
    n_runs: int
    active: list[_Run] = field(default_factory=list)
    """those side by side"""
    n_left: int = 0
    """those that had not ended when these were put side by side"""

    @property
    def fraction(self) -> float:
        """Of the whole work; the sum is exact, so that it never falls for rounding."""
        return self.part.at(math.fsum([self.n_runs - self.n_left, *(run.fraction for run in self.active)]) / self.n_runs)


class Sweeper:
    """The solvers over one matrix; a context manager. ``watch`` is that of the work of which its solvers are a part; else it has
    its own, which asks ``observer``. ``tally`` counts beside others. ``engine`` answers over the rows; by default they are in memory."""

    def __init__(
        self,
        rows: SparseRows,
        *,
        engine: Engine | None = None,
        threads: int | None = None,
        observer: Observer | None = None,
        max_model_bytes: int | None = None,
        watch: Watch | None = None,
        tally: Tally | None = None,
    ) -> None:
        self._watch = Watch(observer) if watch is None else watch
        self._passes = (engine or MemoryEngine()).over(rows, threads, self._watch)
        self._kernels = KernelService(rows, self._passes, self._watch, max_model_bytes)
        self._tally = Tally() if tally is None else tally
        self._most = most_at_a_time(rows.n_rows, rows.n_features)
        self._course = _Course(WHOLE, 0)
        self._telling = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._passes.close()

    def run(self, solvers: dict[str, Callable[[], Steps]], part: Part = WHOLE) -> list[Result]:
        """The results of solvers over these rows; each key prefixes the phases of its solver; they are ``part`` of the whole work.

        As many as fill a block run side by side; when one ends the next begins, so that memory does not grow with their number. Once few are left
        that wait for products, all of them run side by side, by turns. A stop ends all: the results are then their best iterates, with status
        cancelled. Raises Stopped if a solver has none.
        """
        runs = [_Run(place, prefix, begin) for place, (prefix, begin) in enumerate(solvers.items())]
        self._course = _Course(part, len(runs))
        self._watch.latest = self._watch.latest._replace(fraction=part.start)
        most = WIDTH
        try:
            while left := [run for run in runs if run.result is None]:
                if len(left) <= self._most and all(isinstance(run.request, Product) for run in left[:WIDTH]):
                    most = self._most
                active = left[:most]
                self._course.active, self._course.n_left = active, len(left)
                for run in active:
                    run.start()
                self._round([run for run in active if run.result is None])
                self._watch.latest = self._watch.latest._replace(fraction=self._course.fraction)
        except Stopped as stop:
            for run in runs:
                self._stop(run, stop)
            if any(run.result is None for run in runs):
                raise
        finally:
            self._tally.passes += sum(run.passes for run in runs)
        return [self._finished(run) for run in runs]

    def _round(self, runs: list[_Run]) -> None:
        """Answer all requests but products, cuts together; when all want a product, the products go through the data together: those of as many
        solvers as fill a block, which have been sent the fewest. So blocks are full until the last solvers end.

        A solver that waits at a meeting holds nobody up.
        """
        met = self._met(runs)
        if met:
            self._resume(*met)
            return
        runs = [run for run in runs if not isinstance(run.request, Meeting)]
        if all(isinstance(run.request, Product) for run in runs):
            runs = sorted(runs, key=lambda run: run.n_products)[:WIDTH]
            products = [run.request for run in runs if isinstance(run.request, Product)]
            for run, product in zip(runs, products, strict=True):
                run.passes += share(product.weights)
                run.n_products += 1
            self._resume(runs, self._passes.products(products))
        else:
            others = [run for run in runs if not isinstance(run.request, Product)]
            cuts = iter(self._cuts([run for run in others if isinstance(run.request, Cut)]))
            self._resume(others, [next(cuts) if isinstance(run.request, Cut) else self._answer(run) for run in others])

    def _cuts(self, runs: list[_Run]) -> list[Vector]:
        """What solvers are sent that all want a cut."""
        for run in runs:
            run.passes += 1
        return self._passes.cuts([run.request for run in runs if isinstance(run.request, Cut)])

    @staticmethod
    def _met(runs: list[_Run]) -> tuple[list[_Run], list[Any]] | None:
        """The solvers of a meeting to which all have come, and what each is sent; None if there is no such meeting."""
        for meeting in (run.request for run in runs if isinstance(run.request, Meeting)):
            come = [run for run in runs if run.request is meeting]
            if len(come) == meeting.n_solvers:
                return come, [meeting.decide()] * len(come)
        return None

    def _resume(self, runs: list[_Run], answers: list[Any]) -> None:
        """Let solvers go on, as many at once as there are threads: several until each wants what takes all threads."""
        if len(runs) > 1:
            works = [partial(self._go_on, run, answer) for run, answer in zip(runs, answers, strict=True)]
            self._passes.side_by_side(works, self._watch)
        else:
            for run, answer in zip(runs, answers, strict=True):
                run.resume(answer)
            self._watch()

    def _go_on(self, run: _Run, answer: Any) -> None:
        """Let one solver go on by the calling thread, which also does for it what one thread can do."""
        run.resume(answer)
        while self._is_for_one(run.request) and not self._watch.stopped:
            run.resume(self._answer(run, alone=True))
            self._watch()

    def _is_for_one(self, request: Request | None) -> bool:
        """Whether one thread is to do what a solver wants, while others do that for other solvers."""
        return isinstance(request, Adjoint | Adjoints | Scores | Report | Pause) or (isinstance(request, Product) and self._passes.is_light(request))

    def _answer(self, run: _Run, alone: bool = False) -> Any:
        """What a solver wants; ``alone``: by the calling thread, while others are at something else."""
        match run.request:
            case Report():
                self._tell(run, run.request)
            case Adjoint(weights):
                run.passes += share(weights) / 2
                self._passes.adjoint(run.request, alone)
            case Adjoints(requests):
                for each in requests:
                    run.passes += share(each.weights) / 2
                self._passes.adjoints(requests, alone)
            case Product(_, weights):
                run.passes += share(weights)
                return self._passes.product(run.request, alone)
            case Scores(_, skipped):
                run.passes += (1 - share(skipped)) / 2
                self._passes.scores(run.request, alone)
            case KernelRange() | KernelSubset() | KernelRows() | KernelSums() | KernelScores() | CheckModelSize():
                return self._kernels.answer(run.request, run.prefix)
        return None

    def _stop(self, run: _Run, stop: Stopped) -> None:
        """Let the solver return its best iterate, if it has one; what it still reports is kept, what it still requests is refused."""
        run.start()
        while run.steps is not None:
            try:
                request = run.steps.throw(stop)
                while isinstance(request, Report):
                    self._tell(run, request)
                    request = run.steps.send(None)
            except StopIteration as end:
                run.end(end.value)
            except Stopped:
                run.steps = None

    def _finished(self, run: _Run) -> Result:
        assert run.result is not None
        return Result(**{**vars(run.result), "trace": tuple(run.trace), "passes": run.passes})

    def _tell(self, run: _Run, report: Report) -> None:
        objective = report.stage_objective if report.objective is None else report.objective
        with self._telling:  # or a thread would tell what another has overtaken
            run.fraction = max(run.fraction, report.fraction)  # a solver's guess of how far it is may fall; what is told does not
            self._watch.latest = TracePoint(
                run.prefix + report.phase, *report[1:3], objective, self._course.fraction, self._watch.seconds, report.stages
            )
            # as if one run followed the other: what is kept must not depend on how far others are at this moment
            own = (run.place + run.fraction) / self._course.n_runs
            run.trace.append(self._watch.latest._replace(fraction=self._course.part.at(own)))
