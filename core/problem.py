"""The two-class problem that every solver takes, and the result that every solver returns."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.errors import InvalidDocuments
from core.kernels.function import Kernel
from core.progress import Stopped, TracePoint


class Status(StrEnum):
    """How a solver ended; only ``converged`` says that its stopping rule was met."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration_limit"
    CANCELLED = "cancelled"
    NUMERICAL_ERROR = "numerical_error"

    def worse(self, other: "Status") -> "Status":
        """The less satisfying of two endings, for work made of parts."""
        return max(self, other, key=list(Status).index)


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

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Coefficients of a linear solution, shape (n_features + 1,), the bias last."""
        assert isinstance(self.decision, Linear)
        return np.append(self.decision.coefficients, self.decision.intercept)


NO_RESULT = Result(Linear(np.zeros(0), 0.0), np.zeros(0), 0.0, Status.CONVERGED)
"""of steps whose findings are kept beside them"""


def unlabeled_scores(results: Iterable[Result]) -> NDArray[np.float64]:
    """Scores of the unlabeled rows by the solutions of all problems, shape (n_unlabeled, n_problems)."""
    return np.column_stack([result.unlabeled_scores for result in results])


def ensure_complete(results: Iterable[Result]) -> None:
    """Raise Stopped if the observer stopped one of them: a best iterate is an answer, but nothing to go on from."""
    if any(result.status is Status.CANCELLED for result in results):
        raise Stopped


@dataclass(frozen=True)
class Problem:
    """Labeled and unlabeled rows of one matrix; read-only.

    Losses are means: labeled row i weighs ``costs[i] / Σ costs of the labeled rows``, an unlabeled row likewise among
    the unlabeled, so that a row given twice is the same as its cost doubled.
    """

    rows: SparseRows
    """the labeled rows, then the unlabeled ones"""
    y: NDArray[np.float64]
    """shape (n_labeled,), -1 or +1"""
    costs: NDArray[np.float64]
    """shape (n_rows,), relative weights above 0; a labeled row of weight 0, as cross-validation makes them, is only
    scored"""
    seed: int = 0
    """of all random numbers that a solver may draw"""
    part_of: NDArray[np.int64] | None = None
    """shape (n_features,): the part of each column, of documents of several parts"""

    @classmethod
    def of(
        cls, rows: SparseRows, y: NDArray[np.float64], costs: NDArray[np.float64] | None = None, seed: int = 0
    ) -> "Problem":
        """A checked problem, the labeled rows first and as many as ``y``; raises InvalidDocuments."""
        y = np.array(y, np.float64)
        costs = np.ones(rows.n_rows) if costs is None else np.array(costs, np.float64)
        if not 0 < len(y) <= rows.n_rows:
            raise InvalidDocuments("there are no labeled documents")
        if not np.all(np.abs(y) == 1):
            raise InvalidDocuments("labels of a two-class problem are -1 and +1")
        if costs.shape != (rows.n_rows,) or not np.all((costs > 0) & np.isfinite(costs)):
            raise InvalidDocuments("costs are finite numbers above 0, one a row")
        y.flags.writeable = costs.flags.writeable = False
        return cls(rows, y, costs, seed)

    @property
    def n_labeled(self) -> int:
        """Number of labeled rows."""
        return len(self.y)

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabeled rows."""
        return self.rows.n_rows - len(self.y)

    @property
    def weights(self) -> NDArray[np.float64]:
        """shape (n_rows,): the costs, scaled to sum to 1 over the labeled rows and to 1 over the unlabeled ones."""
        return np.concatenate([costs / costs.sum() for costs in np.split(self.costs, [self.n_labeled])])

    def labeled_fraction(self) -> float:
        """Share of the labeled rows' cost that is of class +1."""
        costs = self.costs[: self.n_labeled]
        return float(costs[self.y > 0].sum() / costs.sum())
