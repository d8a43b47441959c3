"""Semi-supervised multinomial naive Bayes, fitted by EM (Nigam et al. 2000). Documents are bags of terms; the classes of unlabeled ones are latent.

Few labels start it. The unlabeled documents show which terms go together and how large the classes are: of short texts it finds both better than a
margin does. Where a class has many topics it is wrong, as labels left out show.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.engine.runner import Adjoint, Report, Request, Scores, Steps, Stopped, Sweeper
from core.numerics.compiled_elementary import exp, log
from core.numerics.elementary import log_of
from core.numerics.vectors import dot
from core.one_vs_rest import n_problems
from core.problem.result import Linear, Result, Status
from core.progress import Checkpoint, Part
from core.selection.class_fractions import FractionEstimate, combine_evidence
from core.selection.data import SelectionData
from core.selection.fraction_path import FractionPath, shifted_path
from core.selection.posterior import refine_grid
from core.selection.prediction import ERROR, Prediction
from core.validation.calibration import SLOPE, iterative_proportional_fitting

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_SMOOTHING = 10.0
"""average documents that are added to each class, so that no term is impossible: about as many as are labeled"""
_TOLERANCE, _FOLD_TOLERANCE, _MOST_ROUNDS = 1e-3, 1e-2, 200
"""mean change of the responsibilities at which EM has converged, that without the labels of a fold, and most rounds"""
_LEAST = 1e-300


class NaiveBayesEM:
    """One run of expectation maximisation, without the labels of a fold or with all.

    Objective: the mean over the documents of the negative log-posterior ``−Σ_labeled θ_y·x − Σ_unlabeled log Σ_c π_c exp(θ_c·x) − smoothing
    Σ_c θ_c·m − Σ_c log π_c`` over the log-probabilities θ_c of the terms in each class and the priors π of the classes; m is the mean document.
    Stopping rule: responsibilities that move by less than a thousandth on average; by a hundredth in runs that are only compared, without a fold.
    Source: Nigam, McCallum, Thrun & Mitchell, Text classification from labeled and unlabeled documents using EM, 2000, sections 3 and 4. There are
    three differences: rows of mean square norm 1 instead of counts, which are too sure of themselves; priors of the unlabeled documents alone, since
    labels may have been picked; smoothing by the mean document.
    """

    def __init__(self, data: SelectionData, fold: int) -> None:
        """Without the labels of this fold; with all labels if no fold has this number."""
        self.n_labeled, n_rows, n_classes = len(data.class_indices), data.scaled.rows.n_rows, data.n_classes
        self.log_terms: Matrix = np.zeros((n_classes, data.scaled.rows.n_features + 1))
        """θ, shape (n_classes, n_features + 1), the last column zeros for the bias"""
        self.logits: Matrix = np.zeros((n_classes, n_rows))
        """θ_c·x of all rows, shape (n_classes, n_rows)"""
        self.priors: Vector = np.full(n_classes, 1 / n_classes)
        """π, shape (n_classes,)"""
        self._responsibilities: Matrix = np.zeros((n_classes, n_rows))
        labeled = np.flatnonzero(data.folds != fold)
        self._responsibilities[data.class_indices[labeled], labeled] = 1.0
        self._labeled = labeled
        self._counted: Vector = np.ones(n_rows)
        self._counted[np.flatnonzero(data.folds == fold)] = 0.0
        self._tolerance = _FOLD_TOLERANCE if fold < data.n_folds else _TOLERANCE
        self.objective = np.nan
        self.status = Status.ITERATION_LIMIT

    def steps(self) -> Steps:
        """Maximisation and expectation in turn; the result has status and objective alone."""
        mean, total = np.zeros(self.log_terms.shape[1]), np.zeros(self.log_terms.shape[1])
        yield Adjoint(np.full(self.logits.shape[1], 1 / self.logits.shape[1]), mean)
        for number in range(_MOST_ROUNDS):
            if number == 1:  # before, the unlabeled rows are of no class
                yield Adjoint(self._counted, total)
            yield from self._maximise(mean[:-1], total.copy() if number else None)
            moved = self._expect(mean[:-1])
            yield Report("mixture", number, self.objective, None, (number + 1) / _MOST_ROUNDS)
            if moved < self._tolerance:
                self.status = Status.CONVERGED
                break
        return Result(Linear(np.zeros(0), 0.0), np.zeros(0), self.objective, self.status)

    @cached_property
    def total_terms(self) -> Vector:
        """Sum of θ over the classes, shape (n_features + 1,); of a run that has ended."""
        return np.asarray(self.log_terms.sum(axis=0))

    @cached_property
    def total_logits(self) -> Vector:
        """Sum of the logits over the classes, shape (n_rows,); of a run that has ended."""
        return np.asarray(self.logits.sum(axis=0))

    def joint(self) -> Matrix:
        """Logarithms of the joint densities of all rows and each class, shape (n_classes, n_rows)."""
        return np.asarray(self.logits + log(self.priors)[:, None])

    def _maximise(self, mean: Vector, left: Vector | None) -> Generator[Request, Any, None]:
        """The M-step: each class's log-probabilities of the terms, and its logits of all rows.

        ``left`` is what the sums of all classes add up to. That of the last is what the others leave of it; without it, it is summed, too.
        """
        last = len(self.log_terms) - 1
        for place, responsibilities in enumerate(self._responsibilities):
            if left is not None and place == last:
                sums = left
            else:
                sums = np.zeros(len(mean) + 1)
                yield Adjoint(responsibilities, sums)
                if left is not None:
                    left -= sums
            counts = np.maximum(sums[:-1] + _SMOOTHING * mean, _LEAST)
            self.log_terms[place, :-1] = log(counts) - log_of(counts.sum())
            yield Scores(self.log_terms[place], np.zeros(self.logits.shape[1]), self.logits[place])

    def _expect(self, mean: Vector) -> float:
        """The E-step: objective, responsibilities of the unlabeled rows, priors. Returns by how much the responsibilities move on average."""
        joint = self.logits[:, self.n_labeled :] + log(self.priors)[:, None]
        largest = joint.max(axis=0)
        responsibilities = exp(joint - largest)
        sums = responsibilities.sum(axis=0)
        responsibilities /= sums
        totals = largest + log(sums)
        known = float((self.logits[:, self._labeled] * self._responsibilities[:, self._labeled]).sum())
        prior = _SMOOTHING * sum(dot(terms[:-1], mean) for terms in self.log_terms) + float(log(self.priors).sum())
        self.objective = -(known + float(totals.sum()) + prior) / self.logits.shape[1]
        before = self._responsibilities[:, self.n_labeled :]
        moved = np.abs(responsibilities - before).sum() / 2 / max(1, responsibilities.shape[1])
        self._responsibilities[:, self.n_labeled :] = responsibilities
        self.priors = np.asarray((responsibilities.sum(axis=1) + 1) / (responsibilities.shape[1] + len(responsibilities)))
        return float(moved)


@dataclass(frozen=True)
class NaiveBayes:
    """Naive Bayes fitted with all labels, and its held-out scores."""

    em: NaiveBayesEM
    """run with all labels"""
    size: float
    """mean size of the log-odds of a class against the others, over classes and unlabeled rows; scores of models are divided by it"""
    estimate: FractionEstimate
    """class fractions; its held-out scores are those of a model's columns"""
    margins: Matrix
    """shape (n_labeled, n_problems): held-out log-odds of a class against all others, of mean size 1 for each class"""
    checkpoint: Checkpoint

    @classmethod
    def of(cls, sweeper: Sweeper, data: SelectionData, grids: Sequence[Vector], given: Vector | None, part: Part, checkpoint: Checkpoint) -> Self:
        """Fit without each fold and with all labels, and estimate the fractions over refined grids; raises Stopped."""
        n_labeled, fine = len(data.class_indices), [refine_grid(grid) for grid in grids]
        margins, columns = np.full((n_labeled, len(grids)), np.nan), np.full((n_labeled, len(grids)), np.nan)
        paths: list[list[FractionPath]] = [[] for _ in grids]
        for fold in range(data.n_folds + 1):
            run = NaiveBayesEM(data, fold)
            sweeper.run({f"mixture/fold={fold}/": run.steps}, part.part(fold / (data.n_folds + 1), (fold + 1) / (data.n_folds + 1)))
            joint = run.joint()
            odds = _log_odds(joint, data.positives, checkpoint)
            for several, grid, column in zip(paths, fine, odds.T, strict=True):
                several.append(shifted_path(column[:n_labeled], column[n_labeled:], grid))
                checkpoint()
            hidden = data.folds == fold
            margins[hidden] = odds[:n_labeled][hidden]
            labeled = joint[:, :n_labeled]
            total = labeled.sum(axis=0)
            columns[hidden] = np.column_stack([_column(labeled, total, each) for each in data.positives])[hidden]
            checkpoint()
        sizes = _sizes(odds[n_labeled:])
        for several, size in zip(paths, sizes, strict=True):
            for path in several:
                path.labeled /= size
        estimate = combine_evidence(data, paths, [Prediction(float(prior), ERROR) for prior in run.priors[data.positives]], given, checkpoint)
        common = float(sizes.mean())
        return cls(run, common, replace(estimate, held_out=columns / common), margins / sizes, checkpoint)

    def fitted_to(self, sweeper: Sweeper, data: SelectionData, part: Part) -> Self:
        """The same, fitted with all labels to these data, of which it has seen the frequent features; itself if there are no more. Raises Stopped."""
        if self.em.log_terms.shape[1] == data.scaled.rows.n_features + 1:
            return self
        run = NaiveBayesEM(data, data.n_folds)
        sweeper.run({"mixture/all/": run.steps}, part)
        odds = _log_odds(run.joint()[:, run.n_labeled :], data.positives, self.checkpoint)
        return replace(self, em=run, size=float(_sizes(odds).mean()))

    def intercepts(self, fractions: Vector) -> Vector:
        """Intercepts of the classes' logits, shape (n_classes,), with which responsibilities have the means ``fractions``.

        The responsibilities are those of logits scaled to be as sure as margins are. Its own are sure of nearly every document, so that the fraction
        of a class would hardly move with an intercept.
        """
        scale = SLOPE / self.size
        likelihoods = scale * self.em.logits[:, self.em.n_labeled :].T
        likelihoods -= likelihoods.max(axis=1, keepdims=True)
        return np.asarray(log(iterative_proportional_fitting(exp(likelihoods), fractions, self.checkpoint)) / scale)

    def steps(self, positive: int, intercepts: Vector) -> Steps:
        """The model of one two-class problem, that class against the others, with the intercepts of all classes. Nothing is left to solve.

        Objective: that of NaiveBayesEM, shared evenly by the problems.
        """
        run = self.em
        objective = run.objective / n_problems(len(run.log_terms))
        coefficients = _column(run.log_terms, run.total_terms, positive)[:-1] / self.size
        intercept = float(_column(intercepts, intercepts.sum(axis=0), positive)) / self.size
        scores = _column(run.logits, run.total_logits, positive)[run.n_labeled :] / self.size + intercept
        try:
            yield Report("mixture", 0, objective, objective, 1.0)
        except Stopped:
            return Result(Linear(coefficients, intercept), scores, objective, Status.CANCELLED)
        return Result(Linear(coefficients, intercept), scores, objective, run.status)


def _log_odds(joint: Matrix, positives: Sequence[int], checkpoint: Checkpoint) -> Matrix:
    """Log-odds of classes against all others, shape (n, n_positives), by the logarithms of the joint densities, shape (n_classes, n).

    Of many classes the densities of the others are the sum of all less the class's own, relative to the largest of the row. Of the class that is
    the largest itself nothing might be left of that sum: there the others are added anew.
    """
    if len(joint) == 2:
        return np.column_stack([joint[each] - joint[1 - each] for each in positives])
    rows, likeliest = np.arange(joint.shape[1]), joint.argmax(axis=0)
    largest = joint[likeliest, rows]
    shares = exp(joint - largest)
    total = shares.sum(axis=0)
    checkpoint()
    others = joint.copy()
    others[likeliest, rows] = -np.inf
    second = others.max(axis=0)
    second += log(exp(others - second).sum(axis=0))
    checkpoint()
    odds = np.empty((joint.shape[1], len(positives)))
    for column, each in enumerate(positives):
        own = likeliest == each
        odds[:, column] = joint[each] - np.where(own, second, largest + log(np.where(own, 1.0, total - shares[each])))
        checkpoint()
    return odds


def _sizes(log_odds: Matrix) -> Vector:
    """Mean sizes of log-odds, shape (n, n_positives), over the rows; shape (n_positives,)."""
    return np.asarray(np.maximum(np.abs(log_odds).mean(axis=0), _LEAST))


def _column(of_classes: NDArray[np.float64], total: NDArray[np.float64], positive: int) -> NDArray[np.float64]:
    """A class's value less the mean of the others, shape (n,): linear, and largest for the class whose own value is largest.

    ``of_classes`` have the shape (n_classes, n), and ``total``, shape (n,), is their sum; or (n_classes,) of a single value.
    """
    if len(of_classes) == 2:
        return np.asarray(of_classes[positive] - of_classes[1 - positive])
    return np.asarray(of_classes[positive] - (total - of_classes[positive]) / (len(of_classes) - 1))
