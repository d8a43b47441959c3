"""Requests of kernel solvers: row caches, kernel rows, weighted sums of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.engine.requests import Adjoint, Product, Scores
from core.kernels.cache import RowCache
from core.kernels.coordinates import Coordinates
from core.kernels.function import Kernel, Name
from core.kernels.gram import Positions, Vector


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
