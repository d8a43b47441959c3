"""The two-class problem that every solver takes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.errors import InvalidDocuments


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
        labeled, unlabeled = np.split(self.costs, [self.n_labeled])
        return np.concatenate([labeled / labeled.sum(), unlabeled / unlabeled.sum()])

    def labeled_fraction(self) -> float:
        """Share of the labeled rows' cost that is of class +1."""
        costs = self.costs[: self.n_labeled]
        return float(costs[self.y > 0].sum() / costs.sum())
