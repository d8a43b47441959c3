"""Requests of solvers, and their steps.

A solver is a generator: it yields a request for work on the data or a report of its progress, is sent the answer, and
returns its result.

Linear solvers request passes over the rows, kernel solvers row caches, kernel rows and weighted sums of them.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.kernels.cache import RowCache
from core.kernels.function import Kernel, Name
from core.kernels.gram import Positions
from core.kernels.paths import Coordinates
from core.numerics.elementary import Vector as Vector
from core.problem import Result, Status
from core.progress import Phase as Phase
from core.progress import Span
from core.progress import Stopped as Stopped


class Product(NamedTuple):
    """Requests ``Xᵀ(weights ∘ q)`` with ``q = X p``, which is written to ``scores`` on the rows with a weight."""

    vector: Vector
    weights: Vector
    scores: Vector


class Scores(NamedTuple):
    """Requests that ``X p`` be written to ``scores`` on the rows where ``skipped`` is 0; the answer is None."""

    vector: Vector
    skipped: Vector
    scores: Vector


class AllScores(NamedTuple):
    """Requests several of these at once, each with scores of its own; the answer is None."""

    requests: Sequence[Scores]


class Adjoint(NamedTuple):
    """Requests ``sums += Xᵀ weights``; the answer is None."""

    weights: Vector
    sums: Vector


class Adjoints(NamedTuple):
    """Requests several of these at once, each with sums of its own; the answer is None."""

    requests: Sequence[Adjoint]


class Cut(NamedTuple):
    """Requests ``Xᵀ(weights ∘ sides)`` of the rows with ``side · score < 1``; ``X p`` is written to ``scores``.

    The side of a row is its label, or without one (0) the sign of its score, +1 for 0.
    """

    vector: Vector
    labels: Vector
    weights: Vector
    scores: Vector


class KernelSpec(NamedTuple):
    """A kernel as options name it; gamma may be a rule.

    ``scale`` is taken over the rows that are trained on, ``median`` over all rows of the problem; see
    core.kernels.gamma.
    """

    name: Name
    gamma: float | str
    degree: int
    coef0: float


class KernelRange(NamedTuple):
    """Requests the RowCache of the rows ``start`` to ``stop``, which all solvers that request it share.

    With ``mean``, weights of shape (stop − start,), their weighted mean in the space of the kernel is one more point
    behind the rows.
    """

    kernel: KernelSpec
    start: int
    stop: int
    mean: Vector | None
    most_bytes: int
    reproducible: bool = False
    """whether all processors must compute the same bits, though dense documents then take longer"""


class KernelSubset(NamedTuple):
    """Requests a RowCache of the rows at ``positions`` for this solver alone."""

    kernel: Kernel
    positions: Positions
    most_bytes: int


class KernelRows(NamedTuple):
    """Requests that the rows of these points be in the cache, at most ``cache.batch_rows`` of them; the answer is
    None."""

    cache: RowCache
    positions: Positions


class KernelSums(NamedTuple):
    """Requests ``Σ_k weights[k] · kernel row of positions[k]``, shape (n_points,)."""

    cache: RowCache
    positions: NDArray[np.int64]
    weights: Vector


class KernelScores(NamedTuple):
    """Requests ``Σ_k weights[k] · k(row rows[k], x)`` of the rows x at ``positions``, shape (len(positions),)."""

    kernel: Kernel
    rows: Positions
    weights: Vector
    positions: Positions


class CheckModelSize(NamedTuple):
    """Reports the rows of the problem that a model of the present solution would store; the answer is None.

    Raises ModelTooLarge.
    """

    rows: Positions


class KernelSpace(NamedTuple):
    """Requests the Subspace of all rows, which all solvers that request it share."""

    kernel: KernelSpec
    most_columns: int


class PathSpace(NamedTuple):
    """Requests the Subspace in which distances are those along paths through dense places
    (core.kernels.paths), which all solvers that request it share.
    """

    rho: float
    left_out: float


class Subspace(NamedTuple):
    """Coordinates of all rows in a space, the kernel by which their distances are found, and the passes over them."""

    coordinates: Coordinates
    kernel: Kernel
    passes: Any


class Within(NamedTuple):
    """Requests the same over the coordinates of a subspace."""

    subspace: Subspace
    request: Product | Scores | Adjoint


class Neighbourhood(NamedTuple):
    """Requests the core.kernels.graph.Laplacian of all rows, each joined to its nearest, which all solvers share."""

    n_nearest: int


KernelRequest = (
    KernelRange
    | KernelSubset
    | KernelRows
    | KernelSums
    | KernelScores
    | CheckModelSize
    | KernelSpace
    | PathSpace
    | Within
    | Neighbourhood
)


class Report(NamedTuple):
    """The progress of a solver: a TracePoint without its time."""

    phase: Phase
    iteration: int
    stage_objective: float
    objective: float | None
    """None: the stage's own"""
    fraction: float
    share: float = 0.0
    """how much of the whole work this phase is, for who can tell how far within it things are"""
    stages: int = 0
    """number of stages that the phase is one of, at most; 0 if it is not known"""


class Yield(NamedTuple):
    """Lets other solvers go on, and the observer be asked."""


class Barrier(NamedTuple):
    """Holds several solvers until ``n_solvers`` of them request it; all are then sent the result of ``decide``.

    They request the same object. Those that wait make room for others in a block.
    """

    n_solvers: int
    decide: Callable[[], Any]
    """called once a barrier, by the thread of the scheduler"""


Request = Product | Scores | AllScores | Adjoint | Adjoints | Cut | KernelRequest | Report | Yield | Barrier
T = TypeVar("T")
Procedure = Generator[Request, Any, T]
"""A part of a solver: it yields requests, is sent the answers, and returns what it has found."""
Steps = Procedure[Result]


def as_part(steps: Steps, span: Span) -> Steps:
    """A solver that does one part of the work of another: its reports get fractions of the whole."""

    def translate(request: Request) -> Procedure[Any]:
        if isinstance(request, Report):
            request = request._replace(fraction=span.position(request.fraction))
        return (yield request)

    return translated(steps, translate)


def known_result(result: Result, phase: Phase) -> Steps:
    """The steps of a solver whose result is known: it is reported, and cancelled where the observer stops there."""
    try:
        yield Report(phase, 0, result.objective, result.objective, 1.0)
    except Stopped:
        return replace(result, status=Status.CANCELLED)
    return result


def translated(steps: Procedure[T], translate: Callable[[Request], Procedure[Any]]) -> Procedure[T]:
    """Steps with requests that others answer: ``translate`` of a request yields its own requests, and returns the
    answer.
    """
    try:
        request = steps.send(None)
        while True:
            try:
                answer = yield from translate(request)
            except Stopped as stop:
                request = steps.throw(stop)
            else:
                request = steps.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found


def cost(request: object) -> float:
    """The passes over the nonzeros that a request takes; 0 for requests that are no pass."""
    match request:
        case Product(_, weights):
            return share(weights)
        case Adjoint(weights):
            return share(weights) / 2
        case Scores(_, skipped):
            return (1 - share(skipped)) / 2
        case Cut():
            return 1.0
    return 0.0


def share(weights: Vector) -> float:
    """The share of the rows that a pass with these weights reads."""
    return float(np.count_nonzero(weights)) / max(1, len(weights))
