"""What solvers of the kernel family ask of the data."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.kernels.cache import RowCache
from core.kernels.function import Kernel, Name
from core.kernels.gram import Positions, Vector


class Wish(NamedTuple):
    """A kernel as options name it: gamma may be ``scale`` or ``median`` of all rows of the problem."""

    name: Name
    gamma: float | str
    degree: int
    coef0: float


class KernelRange(NamedTuple):
    """Wanted and answered: the RowCache of the rows ``start`` to ``stop``, the same for all solvers that want it.

    With ``mean``, weights of shape (stop − start,), their weighted mean is the point behind them.
    """

    kernel: Wish | Kernel
    start: int
    stop: int
    mean: Vector | None
    most_bytes: int


class KernelSubset(NamedTuple):
    """Wanted and answered: a RowCache of some rows for this solver alone."""

    kernel: Wish | Kernel
    positions: Positions
    most_bytes: int


class KernelRows(NamedTuple):
    """Wanted: that the rows of these points be in the cache, at most ``cache.block`` of them; answered with None."""

    cache: RowCache
    positions: Positions


class KernelSums(NamedTuple):
    """Wanted and answered: ``Σ_k weights[k] · kernel row of positions[k]``, shape (n_points,)."""

    cache: RowCache
    positions: NDArray[np.int64]
    weights: Vector


class Keep(NamedTuple):
    """Told: a model of the present solution keeps these rows of the problem. Answered with None; raises ModelTooLarge."""

    rows: Positions


KernelRequest = KernelRange | KernelSubset | KernelRows | KernelSums | Keep
