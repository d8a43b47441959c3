"""Solutions that are made to be compared: regularisation paths over class fractions, and supervised fits, with scores
of labels left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.algorithms.tsvm import tsvm
from core.engine.requests import Barrier, Procedure, Scores, Steps, Vector, as_part
from core.options.linear import SvmOptions, TsvmOptions
from core.problem import Linear, Problem, Result, ensure_complete
from core.progress import Span
from core.validation.folds import without

TOLERANCE, SPARSE_TOLERANCE = 3e-2, 1e-1
"""tolerances of the solutions, which are compared and not kept: on dense rows fractions of less exact ones mislead, on
sparse ones they do not"""


@dataclass
class FractionPath:
    """Scores along a grid of fractions: of transductive solutions, each warm-started from its neighbour, filled when
    the steps have been run; or of one model that has no fraction set, shifted for each (naive Bayes, kernel ridge
    regression, label spreading)."""

    fractions: Vector
    """shape (n,), ascending: the grid"""
    objectives: Vector = field(init=False)
    """shape (n,): J (Eqn. 18 of Sindhwani & Keerthi 2006) of the solutions, or the share of the edges that label
    spreading cuts; NaN where nothing is solved, and of naive Bayes and kernel ridge regression, which fit all fractions
    equally well"""
    labeled: NDArray[np.float64] = field(init=False)
    """shape (n, n_labeled): scores of all labeled rows, hidden ones among them; NaN where nothing is solved"""
    thresholds: Vector = field(init=False)
    """shape (n,): the threshold nearest to 0 above which the fraction of the unlabeled rows is: the objective's
    constraint is on labels that a solution may contradict by its scores; 0 of shifted scores"""

    def __post_init__(self) -> None:
        self.thresholds = np.zeros(len(self.fractions))

    @property
    def solved(self) -> slice:
        """Positions in the grid that have a solution."""
        known = np.flatnonzero(np.isfinite(self.labeled).any(axis=1))
        return slice(int(known[0]), int(known[-1]) + 1) if len(known) else slice(0, len(self.fractions))

    def steps(self, problem: Problem, hidden: NDArray[np.bool_], options: TsvmOptions, meeting: Barrier) -> Steps:
        """Solve at the middle of the grid and beside it, then outwards, each solution starting from its neighbour.

        How far is decided at a ``meeting`` of all paths of the problem: it answers with the next positions, or none if
        the paths are done. Labeled rows that are ``hidden``, shape (n_labeled,), cost nothing. If none is, the solution
        in the middle is returned, without its scores; no other is kept.
        """
        problem = without(problem, hidden)
        count, middle = len(self.fractions), len(self.fractions) // 2
        self.objectives, self.labeled = np.full(count, np.nan), np.full((count, problem.n_labeled), np.nan)
        first = yield from as_part(self._solve(middle, problem, options, None), _part_of(0))
        ends, positions, number = (
            {-1: first, 1: first},
            [middle + side for side in (1, -1) if 0 <= middle + side < count],
            1,
        )
        while positions:
            for position in positions:
                side = 1 if position > middle else -1
                ends[side] = yield from as_part(self._solve(position, problem, options, ends[side]), _part_of(number))
                number += 1
            positions = yield meeting
        return _without_solution(first) if hidden.any() else replace(first, unlabeled_scores=np.zeros(0))

    def _solve(self, position: int, problem: Problem, options: TsvmOptions, last: Result | None) -> Steps:
        fraction = float(self.fractions[position])
        own = options.model_copy(update={"positive_fraction": fraction, "class_fractions": None})
        result = yield from tsvm(problem, own, None if last is None else coefficients_of(last))
        ensure_complete([result])
        self.objectives[position] = result.objective
        self.labeled[position] = yield from labeled_scores(result, problem)
        self.thresholds[position] = nearest_threshold(result.unlabeled_scores, fraction)
        return result


def nearest_threshold(scores: Vector, fraction: float) -> float:
    """Of the thresholds that have ``round(fraction · n)`` of the scores, shape (n,), above them, the one nearest to
    0."""
    n_below = len(scores) - round(fraction * len(scores))
    ends = np.partition(np.concatenate([[-np.inf], scores, [np.inf]]), [n_below, n_below + 1])
    return min(max(0.0, float(ends[n_below])), float(ends[n_below + 1]))


def shifted_scores(scores: Vector, unlabeled: Vector, fractions: Vector) -> NDArray[np.float64]:
    """Scores, shape (n_fractions, len(scores)), shifted so that for each fraction this share of the ``unlabeled`` rows
    is above 0.
    """
    return np.asarray(scores - np.quantile(unlabeled, 1 - fractions)[:, None])


def shifted_path(labeled: Vector, unlabeled: Vector, grid: Vector) -> FractionPath:
    """Scores of a model that has no fraction set, shifted for each fraction of the grid so that this share of the
    unlabeled rows is above 0.
    """
    path = FractionPath(grid)
    path.objectives = np.full(len(grid), np.nan)  # all fractions fit equally well here
    path.labeled = shifted_scores(labeled, unlabeled, grid)
    return path


def supervised_options(lambda_: float) -> SvmOptions:
    """Options of supervised solutions that are made to be compared."""
    return SvmOptions(lambda_=lambda_, tolerance=TOLERANCE)


@dataclass
class SupervisedFit:
    """A supervised solution's scores of all labeled rows, hidden ones among them; filled when the steps have been
    run."""

    labeled: Vector = field(init=False)
    """shape (n_labeled,)"""

    def steps(self, problem: Problem, hidden: NDArray[np.bool_], lambda_: float) -> Steps:
        """Solve and score; labeled rows that are ``hidden``, shape (n_labeled,), cost nothing."""
        problem = without(problem, hidden)
        result = yield from svm(problem, supervised_options(lambda_))
        ensure_complete([result])
        self.labeled = yield from labeled_scores(result, problem)
        return _without_solution(result)


def held_out_scores(
    fits: Mapping[tuple[int, int], SupervisedFit], folds: NDArray[np.int64], n_problems: int
) -> NDArray[np.float64]:
    """Scores of the labeled rows, shape (n_labeled, n_problems), each by the fit without its fold; NaN where no fold
    leaves the row out.

    ``fits`` are by two-class problem and fold.
    """
    scores = np.full((len(folds), n_problems), np.nan)
    for (column, fold), fit in fits.items():
        left_out = folds == fold
        scores[left_out, column] = fit.labeled[left_out]
    return scores


def _part_of(number: int) -> Span:
    """The part of the work of a path that a solution is: the first, from nothing, is half of it.

    How many there will be is not known.
    """
    before, after = (0.5 * 0.6 ** (number - 1) if number else 1.0), 0.5 * 0.6**number
    return Span(1 - before, 1 - after)


def _without_solution(result: Result) -> Result:
    """The result without the solution: there are many, each with a number a row and a column."""
    return replace(result, decision=Linear(np.zeros(0), 0.0), unlabeled_scores=np.zeros(0))


def labeled_scores(result: Result, problem: Problem) -> Procedure[Vector]:
    """The scores of the labeled rows, shape (n_labeled,)."""
    scores = np.zeros(problem.rows.n_rows)
    yield Scores(coefficients_of(result), (np.arange(len(scores)) >= problem.n_labeled).astype(np.float64), scores)
    return scores[: problem.n_labeled]


def coefficients_of(result: Result) -> Vector:
    """Coefficients of a linear solution, shape (n_features + 1,), the bias last."""
    assert isinstance(result.decision, Linear)
    return np.append(result.decision.coefficients, result.decision.intercept)
