"""Requests of kernel solvers (row caches, kernel rows, weighted sums of them), and their answers over the rows of one
matrix.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import gathered
from core.documents.rows import SparseRows
from core.engine.passes import Adjoint, Passes, Product, Scores
from core.errors import ModelTooLarge
from core.kernels.cache import RowCache, Team
from core.kernels.function import Kernel, Name
from core.kernels.gamma import resolve_kernel
from core.kernels.gram import Gram, Positions, Vector, wide_scores
from core.kernels.graph import Laplacian
from core.kernels.paths import Coordinates, path_coordinates
from core.problem import stored_bytes
from core.progress import Checkpoint, Phase


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


_DISTANCES = KernelSpec("rbf", "median", 3, 0.0)
"""a kernel whose largest values are those of the nearest rows"""


class KernelService:
    """The kernel rows of one matrix, for all solvers that work on it.

    A row cache that several solvers request is made once. ``max_model_bytes`` bounds the model that their solutions
    make together.
    """

    def __init__(self, rows: SparseRows, team: Team, checkpoint: Checkpoint, max_model_bytes: int | None) -> None:
        self._rows, self._team, self._checkpoint = rows, team, checkpoint
        self._max_model_bytes = max_model_bytes
        self._kernels: dict[tuple[KernelSpec, int, int], Kernel] = {}
        self._caches: dict[Hashable, RowCache] = {}
        self._subspaces: dict[KernelSpace | PathSpace, Subspace | None] = {}
        self._graphs: dict[Neighbourhood, Laplacian] = {}
        self._support: dict[Phase, Positions] = {}

    def answer(self, request: KernelRequest, solver: Phase) -> RowCache | Vector | Subspace | Laplacian | None:
        """The answer to a request of the solver that is run for this; raises ModelTooLarge."""
        match request:
            case KernelRange():
                return self._shared_cache(request)
            case KernelSubset(kernel, positions, most_bytes):
                return RowCache(self._gram(kernel, positions), most_bytes, self._team, self._checkpoint)
            case KernelRows(cache, positions):
                cache.fetch(positions)
            case KernelSums(cache, positions, weights):
                return cache.weighted_sum(positions, weights)
            case KernelScores():
                return self._scores(request)
            case CheckModelSize(rows):
                self._check_model_size(rows, solver)
            case KernelSpace() | PathSpace():
                return self._subspace(request)
            case Neighbourhood():
                return self._graph(request)
            case Within(subspace, inner):
                return _within(subspace.passes, inner)
        return None

    def _subspace(self, request: KernelSpace | PathSpace) -> Subspace | None:
        """None where kernel values leave the range of float32."""
        if request not in self._subspaces:
            spec = request.kernel if isinstance(request, KernelSpace) else _DISTANCES
            kernel = self._kernel_of(spec, 0, self._rows.n_rows)
            gram, found = Gram(self._rows, kernel, None, self._checkpoint), None
            if gram.fits_float32:
                coordinates = (
                    Coordinates(gram.diagonal, gram.fill, request.most_columns, self._checkpoint)
                    if isinstance(request, KernelSpace)
                    else path_coordinates(gram, *request, self._checkpoint)
                )
                found = Subspace(coordinates, kernel, Passes(coordinates.rows, 1, self._checkpoint))
            self._subspaces[request] = found
        return self._subspaces[request]

    def _graph(self, request: Neighbourhood) -> Laplacian:
        if request not in self._graphs:
            kernel = self._kernel_of(_DISTANCES, 0, self._rows.n_rows)
            gram = Gram(self._rows, kernel, None, self._checkpoint)
            self._graphs[request] = Laplacian.of(gram, request.n_nearest, self._team, self._checkpoint)
        return self._graphs[request]

    def _shared_cache(self, request: KernelRange) -> RowCache:
        kernel = self._kernel_of(request.kernel, request.start, request.stop)
        key = (
            kernel,
            request.start,
            request.stop,
            None if request.mean is None else request.mean.tobytes(),
            request.reproducible,
        )
        if key not in self._caches:
            gram = Gram(
                self._rows.between(request.start, request.stop),
                kernel,
                request.mean,
                self._checkpoint,
                request.reproducible,
            )
            self._caches[key] = RowCache(gram, request.most_bytes, self._team, self._checkpoint)
        return self._caches[key]

    def _kernel_of(self, spec: KernelSpec, start: int, stop: int) -> Kernel:
        rows = self._rows.between(start, stop) if spec.gamma in ("scale", "auto") else self._rows
        key = (spec, start, stop)
        if key not in self._kernels:
            self._kernels[key] = resolve_kernel(*spec, rows, self._checkpoint)
        return self._kernels[key]

    def _gram(self, kernel: Kernel, positions: Positions) -> Gram:
        return Gram(gathered(self._rows, positions, self._checkpoint), kernel, None, self._checkpoint)

    def _scores(self, request: KernelScores) -> Vector:
        """Scores of rows by an expansion; those out of the range of float32 are computed one by one, so that they cost
        the others nothing.
        """
        kernel, rows, weights, positions = request
        n_support, scores = len(rows), np.zeros(len(positions))
        gram = self._gram(kernel, np.concatenate([rows, positions]))
        wide = gram.out_of_range[gram.out_of_range >= n_support] - n_support
        narrow = np.setdiff1d(np.arange(len(positions)), wide)
        if len(wide):
            gram = self._gram(kernel, np.concatenate([rows, positions[narrow]]))
            support, others = (gathered(self._rows, chosen, self._checkpoint) for chosen in (rows, positions[wide]))
            scores[wide] = wide_scores(kernel, support, weights, others, self._checkpoint)
        cache = RowCache(gram, 0, self._team, self._checkpoint)
        scores[narrow] = cache.weighted_sum(np.arange(n_support), weights)[n_support:]
        return scores

    def _check_model_size(self, rows: Positions, solver: Phase) -> None:
        self._support[solver] = rows
        if self._max_model_bytes is None:
            return
        together = np.unique(np.concatenate(list(self._support.values())))
        size = stored_bytes(
            len(together),
            int((self._rows.indptr[together + 1] - self._rows.indptr[together]).sum()),
            len(self._support),
        )
        if size > self._max_model_bytes:
            raise ModelTooLarge(len(together), size, self._max_model_bytes)


def _within(passes: Passes, request: Product | Scores | Adjoint) -> Vector | None:
    """The answer by the calling thread, while other threads answer other solvers."""
    match request:
        case Product():
            return passes.product(request, alone=True)
        case Scores():
            passes.scores(request, alone=True)
        case Adjoint():
            passes.adjoint(request, alone=True)
    return None
