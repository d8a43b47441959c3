"""The kernel rows of one matrix: answers to the requests of kernel solvers."""

from collections.abc import Hashable

import numpy as np

from core.documents.reorder import gathered
from core.documents.rows import SparseRows
from core.engine.passes import Passes
from core.engine.requests import (
    CheckModelSize,
    KernelRange,
    KernelRequest,
    KernelRows,
    KernelScores,
    KernelSpace,
    KernelSpec,
    KernelSubset,
    KernelSums,
    Neighbourhood,
    PathSpace,
    Subspace,
    Within,
)
from core.errors import ModelTooLarge
from core.kernels.cache import RowCache, Team
from core.kernels.function import Kernel
from core.kernels.gamma import resolve_kernel
from core.kernels.gram import Gram, Positions, Vector, wide_scores
from core.kernels.graph import Laplacian
from core.kernels.paths import Coordinates, path_coordinates
from core.problem import stored_bytes
from core.progress import Checkpoint, Phase

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
                if request not in self._graphs:
                    kernel = self._kernel_of(_DISTANCES, 0, self._rows.n_rows)
                    gram = Gram(self._rows, kernel, None, self._checkpoint)
                    self._graphs[request] = Laplacian.of(gram, request.n_nearest, self._team, self._checkpoint)
                return self._graphs[request]
            case Within(subspace, inner):
                found: Vector | None = subspace.passes.answer(inner, alone=True)
                return found
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
