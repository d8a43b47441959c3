"""Solutions without the labels of a fold, which are made to be compared, and scores of the labels that they leave
out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.engine.requests import Procedure, Scores, Steps, Vector
from core.numerics.elementary import Matrix
from core.options.linear import SvmOptions
from core.problem import Linear, Problem, Result, ensure_complete
from core.validation.folds import without

TOLERANCE, SPARSE_TOLERANCE = 3e-2, 1e-1
"""tolerances of the solutions, which are compared and not kept; of transductive ones on dense and on sparse rows"""


def compared_svm(problem: Problem, lambda_: float) -> Steps:
    """A supervised solution that is made to be compared."""
    return svm(problem, SvmOptions(lambda_=lambda_, tolerance=TOLERANCE))


@dataclass
class FoldFit:
    """A solution's scores of all labeled rows, hidden ones among them, and of the others; filled when the steps have
    been run."""

    labeled: Vector = field(init=False)
    """shape (n_labeled,)"""
    unlabeled: Vector = field(init=False)
    """shape (n_unlabeled,) where they are kept, else empty"""
    keeps_unlabeled: bool = False
    """whether they are: there may be a fit for each fold of each of many classes"""

    def steps(self, problem: Problem, hidden: NDArray[np.bool_], solver: Callable[[Problem], Steps]) -> Steps:
        """Solve and score; labeled rows that are ``hidden``, shape (n_labeled,), cost nothing."""
        problem = without(problem, hidden)
        result = yield from solver(problem)
        ensure_complete([result])
        self.labeled = yield from labeled_scores(result, problem)
        self.unlabeled = result.unlabeled_scores if self.keeps_unlabeled else np.zeros(0)
        return replace(result, decision=Linear(np.zeros(0), 0.0), unlabeled_scores=np.zeros(0))


Fits = Mapping[tuple[int, int], FoldFit]
"""by two-class problem and fold"""


def held_out_scores(fits: Fits, folds: NDArray[np.int64], n_problems: int) -> NDArray[np.float64]:
    """Scores of the labeled rows, shape (n_labeled, n_problems), each by the fit without its fold; NaN where no fold
    leaves the row out.
    """
    scores = np.full((len(folds), n_problems), np.nan)
    for (column, fold), fit in fits.items():
        left_out = folds == fold
        scores[left_out, column] = fit.labeled[left_out]
    return scores


def left_out_scores(by_fit: NDArray[np.float64], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of the scores by all fits, shape (n_fits, n_labeled, n_problems), those by the fit without the row's fold, shape
    (n_labeled, n_problems); NaN where no fold leaves the row out.
    """
    found, known = np.full(by_fit.shape[1:], np.nan), np.flatnonzero(folds >= 0)
    found[known] = by_fit[folds[known], known]
    return found


class FoldScores(NamedTuple):
    """Scores of two classes by fits without the labels of each fold."""

    labeled: Vector
    """shape (n_labeled,): each by the fit without its fold; NaN where no fold leaves the row out"""
    unlabeled: Sequence[Vector]
    """of each fold's fit, shape (n_unlabeled,)"""

    def at(self, fractions: Vector, folds: NDArray[np.int64]) -> Matrix:
        """Scores of the labeled rows at some fractions, shape (n_fractions, n_labeled), shifted so that by each fit
        this share of the unlabeled rows is above 0.
        """
        if not self.unlabeled:
            return np.full((len(fractions), len(folds)), np.nan)
        thresholds = np.column_stack([np.quantile(scores, 1 - fractions) for scores in self.unlabeled])
        return np.asarray(self.labeled - thresholds[:, folds])


def labeled_scores(result: Result, problem: Problem) -> Procedure[Vector]:
    """The scores of the labeled rows, shape (n_labeled,)."""
    scores = np.zeros(problem.rows.n_rows)
    yield Scores(result.coefficients, (np.arange(len(scores)) >= problem.n_labeled).astype(np.float64), scores)
    return scores[: problem.n_labeled]
