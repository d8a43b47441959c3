"""Solutions of all labels by one method: with all labels, and without those of each fold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from core.algorithms.svm import svm
from core.algorithms.tsvm import tsvm
from core.engine.requests import Steps
from core.engine.runner import Scheduler
from core.numerics.elementary import Matrix, Vector
from core.numerics.vectors import dot
from core.options.linear import LinearOptions, TsvmOptions
from core.problem import Linear, Problem, Result, ensure_complete, unlabeled_scores
from core.progress import CALIBRATION, Phase, Span
from core.selection.held_out import labeled_scores
from core.several.task import SeveralTask
from core.validation.folds import N_FOLDS

FOLD_TOLERANCE = 3e-2
"""tolerance of solutions without a fold, which are compared and not kept"""


class Spread(NamedTuple):
    """Mean and standard deviation of the scores of a solution, or of each of several: scores of different solutions
    compare in these units.
    """

    mean: float | Vector
    deviation: float | Vector

    @classmethod
    def of(cls, scores: Vector) -> "Spread":
        """Those of some scores, or of one that all share."""
        mean = float(scores.sum()) / max(1, len(scores))
        apart = scores - mean
        deviation = float(np.sqrt(dot(apart, apart) / max(1, len(scores))))
        return cls(mean, deviation if deviation > 0 else 1.0)

    @classmethod
    def joined(cls, spreads: "Iterable[Spread]") -> "Spread":
        """Those of several solutions, shapes (n_solutions,)."""
        return cls(*(np.array(each) for each in zip(*spreads, strict=True)))

    def standardised(self, scores: Vector | Matrix) -> Vector | Matrix:
        """Scores in these units; of several solutions, a column each."""
        return np.asarray((scores - self.mean) / self.deviation)


@dataclass
class _Fit:
    """One solution's spread, and standardised scores of the labeled rows; filled when the steps have been run."""

    labeled: Vector = field(init=False)
    """shape (n_labeled,)"""
    spread: Spread = field(init=False)

    def steps(self, problem: Problem, options: LinearOptions, keep: bool) -> Steps:
        result = yield from (tsvm(problem, options) if isinstance(options, TsvmOptions) else svm(problem, options))
        ensure_complete([result])
        scores = yield from labeled_scores(result, problem)
        # without unlabeled rows, the labeled ones say how far scores spread
        self.spread = Spread.of(result.unlabeled_scores if problem.n_unlabeled else scores)
        self.labeled = self.spread.standardised(scores)
        return result if keep else replace(result, decision=Linear(np.zeros(0), 0.0), unlabeled_scores=np.zeros(0))


class LabelSolutions(NamedTuple):
    """The solutions of all labels by one method, their scores in units of their spread."""

    results: list[Result]
    """one a label"""
    spread: Spread
    """of all labels"""
    scores: Matrix
    """shape (n_unlabeled, n_labels): standardised scores of the unlabeled rows"""
    held_out: Matrix
    """shape (n_labeled, n_labels): standardised scores of labeled rows by solutions without them; NaN where the rows
    left have none with the label"""

    @classmethod
    def of(cls, results: list[Result], spread: Spread, held_out: Matrix) -> "LabelSolutions":
        """That of solutions of all labels; ``held_out`` is standardised."""
        return cls(results, spread, spread.standardised(unlabeled_scores(results)), held_out)


def solve_labels(
    task: SeveralTask, scheduler: Scheduler, rows_problem: Problem, options: Sequence[LinearOptions], span: Span
) -> LabelSolutions:
    """Solve the problems of all labels with these options, one a label; raises Stopped.

    All run over the same rows, side by side, so that they share passes.
    """
    steps: dict[Phase, Callable[[], Steps]] = {}
    fits: dict[tuple[int, int | None], _Fit] = {}
    for fold in [None, *range(N_FOLDS)]:
        for column, label in enumerate(task.classes):
            problem = task.problem(rows_problem, column, fold)
            if problem is None:
                continue
            own, phase = options[column], Phase(label=label)
            if fold is not None:
                own = own.model_copy(update={"tolerance": max(own.tolerance, FOLD_TOLERANCE)})
                phase = phase.to(CALIBRATION, fold=fold)
            fit = fits[column, fold] = _Fit()
            steps[phase] = partial(fit.steps, problem, own, fold is None)
    results = scheduler.run(steps, span)
    ensure_complete(results)
    held_out = np.full(task.known.shape, np.nan)
    for (column, fold), fit in fits.items():
        if fold is not None:
            left_out = (task.folds == fold) & (task.known[:, column] != 0)
            held_out[left_out, column] = fit.labeled[left_out]
    columns = range(len(task.classes))
    spread = Spread.joined(fits[column, None].spread for column in columns)
    return LabelSolutions.of(results[: len(columns)], spread, held_out)
