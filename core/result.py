"""What every solver returns."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from core.progress import TracePoint


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


@dataclass(frozen=True)
class Result:
    """A two-class solution: a row ``x`` scores ``coefficients @ x + intercept``, positive for the class +1."""

    coefficients: NDArray[np.float64]
    """shape (n_features,)"""
    intercept: float
    unlabeled_scores: NDArray[np.float64]
    """shape (n_unlabeled,)"""
    objective: float
    """the objective in the solver's docstring, at the returned coefficients"""
    status: Status
    trace: tuple[TracePoint, ...] = ()
    passes: float = 0.0
    """passes over the nonzeros that the solution took, partial ones counted by their share"""
