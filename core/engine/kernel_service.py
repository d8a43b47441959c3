"""Answers what solvers of the kernel family ask."""

from collections.abc import Hashable

import numpy as np

from core.documents.reorder import gathered
from core.documents.rows import SparseRows
from core.engine.kernel_requests import Keep, KernelRange, KernelRequest, KernelRows, KernelSubset, KernelSums, Wish
from core.errors import ModelTooLarge
from core.kernels.cache import RowCache, Team
from core.kernels.function import Kernel
from core.kernels.gram import Gram, Positions, resolved
from core.problem.result import stored_bytes
from core.progress import Checkpoint


class KernelService:
    """The kernel rows of one matrix, for all solvers that work on it.

    Row caches that several solvers want are made once. ``max_model_bytes`` bounds the model that their solutions make together.
    """

    def __init__(self, rows: SparseRows, team: Team, checkpoint: Checkpoint, max_model_bytes: int | None) -> None:
        self._rows, self._team, self._checkpoint = rows, team, checkpoint
        self._max_model_bytes = max_model_bytes
        self._kernels: dict[Wish, Kernel] = {}
        self._caches: dict[Hashable, RowCache] = {}
        self._kept: dict[str, Positions] = {}

    def answer(self, request: KernelRequest, solver: str) -> RowCache | np.ndarray[tuple[int], np.dtype[np.float64]] | None:
        """The answer to a request of one of the solvers; raises ModelTooLarge."""
        match request:
            case KernelRange():
                return self._shared(request)
            case KernelSubset(kernel, positions, most_bytes):
                gram = Gram(gathered(self._rows, positions, self._checkpoint), self._resolved(kernel), None, self._checkpoint)
                return RowCache(gram, most_bytes, self._team, self._checkpoint)
            case KernelRows(cache, positions):
                cache.fetch(positions)
            case KernelSums(cache, positions, weights):
                return cache.expand(positions, weights)
            case Keep(rows):
                self._keep(rows, solver)
        return None

    def _shared(self, request: KernelRange) -> RowCache:
        kernel = self._resolved(request.kernel)
        key = (kernel, request.start, request.stop, None if request.mean is None else request.mean.tobytes())
        if key not in self._caches:
            gram = Gram(self._rows.between(request.start, request.stop), kernel, request.mean, self._checkpoint)
            self._caches[key] = RowCache(gram, request.most_bytes, self._team, self._checkpoint)
        return self._caches[key]

    def _resolved(self, wish: Wish | Kernel) -> Kernel:
        if isinstance(wish, Kernel):
            return wish
        if wish not in self._kernels:
            self._kernels[wish] = resolved(*wish, self._rows, self._checkpoint)
        return self._kernels[wish]

    def _keep(self, rows: Positions, solver: str) -> None:
        self._kept[solver] = rows
        if self._max_model_bytes is None:
            return
        together = np.unique(np.concatenate(list(self._kept.values())))
        size = stored_bytes(len(together), int((self._rows.indptr[together + 1] - self._rows.indptr[together]).sum()), len(self._kept))
        if size > self._max_model_bytes:
            raise ModelTooLarge(len(together), size, self._max_model_bytes)
