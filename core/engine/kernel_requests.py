"""Requests of kernel solvers: row caches, kernel rows, weighted sums of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.kernels.cache import RowCache
from core.kernels.function import Kernel, Name
from core.kernels.gram import Positions, Vector


class KernelSpec(NamedTuple):
    """A kernel as options name it: gamma may be the rule ``scale`` or ``median``, taken over all rows of the problem."""

    name: Name
    gamma: float | str
    degree: int
    coef0: float


class KernelRange(NamedTuple):
    """Requests the RowCache of the rows ``start`` to ``stop``, which all solvers that request it share.

    With ``mean``, weights of shape (stop − start,), their weighted mean in the space of the kernel is one more point behind the rows.
    """

    kernel: KernelSpec | Kernel
    start: int
    stop: int
    mean: Vector | None
    most_bytes: int


class KernelSubset(NamedTuple):
    """Requests a RowCache of the rows at ``positions`` for this solver alone."""

    kernel: KernelSpec | Kernel
    positions: Positions
    most_bytes: int


class KernelRows(NamedTuple):
    """Requests that the rows of these points be in the cache, at most ``cache.batch_rows`` of them; the answer is None."""

    cache: RowCache
    positions: Positions


class KernelSums(NamedTuple):
    """Requests ``Σ_k weights[k] · kernel row of positions[k]``, shape (n_points,)."""

    cache: RowCache
    positions: NDArray[np.int64]
    weights: Vector


class CheckModelSize(NamedTuple):
    """Reports the rows of the problem that a model of the present solution would store; the answer is None. Raises ModelTooLarge."""

    rows: Positions


KernelRequest = KernelRange | KernelSubset | KernelRows | KernelSums | CheckModelSize
