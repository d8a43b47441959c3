"""Runs solvers: executes the passes over the data that they ask for.

A solver is a generator. It yields what it wants done with the data (Product, Scores, Adjoint) or something to tell (Report), is sent the
answer, and returns its Result. The sweeper alone touches the rows: it cuts every pass into slices of a bounded number of nonzeros, shares a
slice among threads, and between slices asks the observer whether to go on; then it throws Stopped into the solver, which returns its
best iterate. So no solver knows of threads, slices or cancellation, and many solvers over the same rows can go through one pass.

Results do not depend on timing: which thread adds up which rows is fixed.
"""

import os
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from core import kernels
from core.progress import Observer, TracePoint
from core.result import Result
from core.rows import SparseRows

Vector = NDArray[np.float64]

SLICE = 1 << 24
"""Most nonzeros (times right-hand sides) between two looks at the observer: about 20 ms on one current core."""
_CHUNKS = 4
_SERIAL = 1 << 15
_POLL_SECONDS = 0.05


class Product(NamedTuple):
    """Wanted: ``q = X p`` written to ``scores`` on the rows with a weight; answered with ``Xᵀ(weights ∘ q)``."""

    vector: Vector
    weights: Vector
    scores: Vector


class Scores(NamedTuple):
    """Wanted: ``X p`` written to ``scores`` on the rows where ``skipped`` is 0; answered with None."""

    vector: Vector
    skipped: Vector
    scores: Vector


class Adjoint(NamedTuple):
    """Wanted and answered: ``Xᵀ weights``."""

    weights: Vector


class Report(NamedTuple):
    """Something to tell: a TracePoint without its time."""

    phase: str
    iteration: int
    stage_objective: float
    objective: float
    fraction: float


Request = Product | Scores | Adjoint | Report
Steps = Generator[Request, Any, Result]


class Stopped(Exception):
    """The observer asked to stop; a solver catches it where it can return its best iterate."""


@dataclass
class _Run:
    """One solver under way."""

    steps: Steps
    prefix: str
    trace: list[TracePoint] = field(default_factory=list)
    fraction: float = 0.0
    passes: float = 0.0
    request: Request | None = None
    result: Result | None = None


class Sweeper:
    """The passes over one matrix, with its threads; a context manager."""

    def __init__(self, rows: SparseRows, *, threads: int | None = None, observer: Observer | None = None) -> None:
        self.rows = rows
        self.threads = threads or len(os.sched_getaffinity(0))
        self._observer = observer
        self._started = time.monotonic()
        self._polled = self._started
        self._latest = TracePoint("", 0, np.nan, np.nan, 0.0, 0.0)
        if rows.n_nonzeros + rows.n_rows < _SERIAL:
            self.threads = 1
        self._executor = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        # BLAS threads go on spinning after a dot product and would take the core that the next pass needs: measured, twice the time.
        self._blas = threadpool_limits(1, "blas") if self.threads > 1 else None
        self._slices = list(self._cut(SLICE))
        self._partial = np.zeros((self.threads, rows.n_features + 1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._executor:
            self._executor.shutdown()
        if self._blas:
            self._blas.restore_original_limits()

    def run(self, solvers: dict[str, Steps]) -> list[Result]:
        """The results of solvers over these rows, run side by side; each key prefixes the phases of its solver."""
        runs = [_Run(steps, prefix) for prefix, steps in solvers.items()]
        for run in runs:
            self._resume(run, None)
        try:
            while active := [run for run in runs if run.result is None]:
                for run in active:
                    self._resume(run, self._answer(run))
                    self._poll()
                self._latest = self._latest._replace(fraction=sum(run.fraction for run in runs) / len(runs))
        except Stopped as stop:
            for run in runs:
                self._stop(run, stop)
        return [self._finished(run) for run in runs]

    def _resume(self, run: _Run, answer: Any) -> None:
        """Let a solver go on to its next request or its end."""
        try:
            run.request = run.steps.send(answer)
        except StopIteration as end:
            run.result, run.fraction = end.value, 1.0

    def _answer(self, run: _Run) -> Any:
        match run.request:
            case Report():
                self._tell(run, run.request)
            case Product(vector, weights, scores):
                run.passes += self._share(weights)
                return self._accumulate(kernels.product_rows, vector, weights, scores)
            case Adjoint(weights):
                run.passes += self._share(weights) / 2
                return self._accumulate(kernels.adjoint_rows, weights)
            case Scores(vector, skipped, scores):
                run.passes += (1 - self._share(skipped)) / 2
                self._over_rows(lambda start, stop, _: kernels.score_rows(*self.rows[:3], start, stop, vector, skipped, scores))
        return None

    def _stop(self, run: _Run, stop: Stopped) -> None:
        """Let the solver return its best iterate; what it still tells is kept, what it still wants computed is refused."""
        while run.result is None:
            try:
                run.request = run.steps.throw(stop)
                while isinstance(run.request, Report):
                    self._tell(run, run.request)
                    run.request = run.steps.send(None)
            except StopIteration as end:
                run.result = end.value

    def _finished(self, run: _Run) -> Result:
        assert run.result is not None
        return Result(**{**vars(run.result), "trace": tuple(run.trace), "passes": run.passes})

    def _tell(self, run: _Run, report: Report) -> None:
        run.fraction = report.fraction
        self._latest = TracePoint(run.prefix + report.phase, *report[1:], time.monotonic() - self._started)
        run.trace.append(self._latest)

    def _poll(self) -> None:
        now = time.monotonic()
        if self._observer is None or now - self._polled < _POLL_SECONDS:
            return
        self._polled = now
        if self._observer(self._latest._replace(seconds=now - self._started)):
            raise Stopped

    def _share(self, weights: Vector) -> float:
        """The share of the rows that a pass reads."""
        return float(np.count_nonzero(weights)) / max(1, len(weights))

    def _accumulate(self, kernel: Any, *arguments: Vector) -> Vector:
        self._partial[:] = 0.0
        self._over_rows(lambda start, stop, thread: kernel(*self.rows[:3], start, stop, *arguments, self._partial[thread]))
        return np.asarray(self._partial.sum(axis=0))

    def _over_rows(self, work: Any) -> None:
        """``work(start, stop, thread)`` over all rows, slice by slice."""
        for slice_ in self._slices:
            if self._executor is None:
                self._share_of(work, slice_, 0)
            else:
                others = [self._executor.submit(self._share_of, work, slice_, thread) for thread in range(1, self.threads)]
                self._share_of(work, slice_, 0)
                for other in others:
                    other.result()
            if len(self._slices) > 1:
                self._poll()

    def _share_of(self, work: Any, bounds: Vector, thread: int) -> None:
        """One thread's rows of a slice: every so-many-th chunk, so that rows without weight are shared fairly."""
        for chunk in range(thread, len(bounds) - 1, self.threads):
            if bounds[chunk] < bounds[chunk + 1]:
                work(bounds[chunk], bounds[chunk + 1], thread)

    def _cut(self, nonzeros: int) -> Iterator[Any]:
        """Row bounds of the chunks of each slice, with about the same number of nonzeros each (a row weighs at least one)."""
        weight = self.rows.indptr - self.rows.indptr[0] + np.arange(len(self.rows.indptr))
        n_slices = max(1, -(-int(weight[-1]) // nonzeros))
        per_slice = self.threads * _CHUNKS if self.threads > 1 else 1
        bounds = np.searchsorted(weight, np.linspace(0, weight[-1], n_slices * per_slice + 1).round())
        bounds[-1] = self.rows.n_rows
        for k in range(n_slices):
            yield bounds[k * per_slice : (k + 1) * per_slice + 1].tolist()
