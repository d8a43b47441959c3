"""Solutions that are made to be compared: regularisation paths over class fractions, and supervised fits, with scores of labels left out."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.algorithms.tsvm import tsvm
from core.engine.runner import Request, Scores, Steps, Vector, as_part
from core.options.linear import SvmOptions, TsvmOptions
from core.problem.problem import Problem
from core.problem.result import Linear, Result, ensure_complete
from core.progress import Part
from core.validation.folds import without

TOLERANCE = 1e-2
"""tolerance of the solutions, which are compared and not kept"""


@dataclass
class FractionPath:
    """Transductive solutions along a grid of fractions, each warm-started from its neighbour; filled when the steps have been run."""

    fractions: Vector
    """shape (n,), ascending"""
    objectives: Vector = field(init=False)
    """shape (n,): J (Eqn. 18 of Sindhwani & Keerthi 2006) of the solutions, NaN where a method has none"""
    labeled: NDArray[np.float64] = field(init=False)
    """shape (n, n_labeled): their scores of all labeled rows, hidden ones among them"""

    def steps(self, problem: Problem, hidden: NDArray[np.bool_], options: TsvmOptions) -> Steps:
        """Solve at the middle of the grid, and from there outwards on both sides, each solution starting from its neighbour.

        Labeled rows that are ``hidden``, shape (n_labeled,), cost nothing. The solutions themselves are not kept.
        """
        problem = without(problem, hidden)
        count, middle = len(self.fractions), len(self.fractions) // 2
        self.objectives, self.labeled = np.full(count, np.nan), np.full((count, problem.n_labeled), np.nan)
        parts = iter([Part(number / count, (number + 1) / count) for number in range(count)])
        first = yield from as_part(self._solve(middle, problem, options, None), next(parts))
        for side in (range(middle + 1, count), range(middle - 1, -1, -1)):
            last = first
            for position in side:
                last = yield from as_part(self._solve(position, problem, options, last), next(parts))
        return _without_solution(first)

    def _solve(self, position: int, problem: Problem, options: TsvmOptions, last: Result | None) -> Steps:
        fraction = float(self.fractions[position])
        own = options.model_copy(update={"positive_fraction": fraction, "class_fractions": None, "tolerance": TOLERANCE})
        result = yield from tsvm(problem, own, None if last is None else coefficients_of(last))
        ensure_complete([result])
        self.objectives[position], self.labeled[position] = result.objective, (yield from labeled_scores(result, problem))
        return result


@dataclass
class SupervisedFit:
    """A supervised solution's scores of all labeled rows, hidden ones among them; filled when the steps have been run."""

    labeled: Vector = field(init=False)
    """shape (n_labeled,)"""

    def steps(self, problem: Problem, hidden: NDArray[np.bool_], options: SvmOptions) -> Steps:
        """Solve and score; labeled rows that are ``hidden``, shape (n_labeled,), cost nothing."""
        problem = without(problem, hidden)
        result = yield from svm(problem, options)
        ensure_complete([result])
        self.labeled = yield from labeled_scores(result, problem)
        return _without_solution(result)


def held_out_scores(fits: Mapping[tuple[int, int], SupervisedFit], folds: NDArray[np.int64], n_problems: int) -> NDArray[np.float64]:
    """Scores of the labeled rows, shape (n_labeled, n_problems), each by the fit without its fold; NaN where no fold leaves the row out.

    ``fits`` are by two-class problem and fold.
    """
    scores = np.full((len(folds), n_problems), np.nan)
    for (column, fold), fit in fits.items():
        left_out = folds == fold
        scores[left_out, column] = fit.labeled[left_out]
    return scores


def _without_solution(result: Result) -> Result:
    """The result without the solution: there are many, each with a number a row and a column."""
    return replace(result, decision=Linear(np.zeros(0), 0.0), unlabeled_scores=np.zeros(0))


def labeled_scores(result: Result, problem: Problem) -> Generator[Request, Any, Vector]:
    """The scores of the labeled rows, shape (n_labeled,)."""
    scores = np.zeros(problem.rows.n_rows)
    yield Scores(coefficients_of(result), (np.arange(len(scores)) >= problem.n_labeled).astype(np.float64), scores)
    return scores[: problem.n_labeled]


def coefficients_of(result: Result) -> Vector:
    """Coefficients of a linear solution, shape (n_features + 1,), the bias last."""
    assert isinstance(result.decision, Linear)
    return np.append(result.decision.coefficients, result.decision.intercept)
