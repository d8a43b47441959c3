"""The result of a solver."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.kernels.function import Kernel
from core.progress import TracePoint
from core.watch import Stopped


class Status(StrEnum):
    """How a solver ended; only ``converged`` says that its stopping rule was met."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration_limit"
    CANCELLED = "cancelled"
    NUMERICAL_ERROR = "numerical_error"

    def worse(self, other: "Status") -> "Status":
        """The less satisfying of two endings, for work made of parts."""
        order = list(Status)
        return max(self, other, key=order.index)


class Linear(NamedTuple):
    """A row ``x`` scores ``coefficients @ x + intercept``."""

    coefficients: NDArray[np.float64]
    """shape (n_features,)"""
    intercept: float


class Expansion(NamedTuple):
    """A row ``x`` scores ``Σ_k weights[k] · kernel(row rows[k] of the problem, x) + intercept``, all rows being
    multiplied by ``scales``.
    """

    rows: NDArray[np.int64]
    """shape (n_support,), ascending: positions in ``problem.rows``"""
    weights: NDArray[np.float64]
    """shape (n_support,)"""
    intercept: float
    kernel: Kernel
    scales: NDArray[np.float64] | None = None
    """shape (n_features,); None if no feature has a scale of its own"""


def stored_bytes(n_support: int, n_nonzeros: int, n_columns: int) -> int:
    """Bytes of a model's support rows, their positions and weights, without its table of features."""
    return n_nonzeros * 8 + n_support * (16 + 8 * n_columns)


Decision = Linear | Expansion


@dataclass(frozen=True)
class Result:
    """A two-class solution: rows with a score above 0 are of class +1."""

    decision: Decision
    unlabeled_scores: NDArray[np.float64]
    """shape (n_unlabeled,)"""
    objective: float
    """the objective in the solver's docstring, at the returned decision"""
    status: Status
    trace: tuple[TracePoint, ...] = ()
    passes: float = 0.0
    """passes over the nonzeros that the solution took, partial ones counted by their share"""


def unlabeled_scores(results: Iterable[Result]) -> NDArray[np.float64]:
    """Scores of the unlabeled rows by the solutions of all problems, shape (n_unlabeled, n_problems)."""
    return np.column_stack([result.unlabeled_scores for result in results])


def ensure_complete(results: Iterable[Result]) -> None:
    """Raise Stopped if the observer stopped one of them: a best iterate is an answer, but nothing to go on from."""
    if any(result.status is Status.CANCELLED for result in results):
        raise Stopped
