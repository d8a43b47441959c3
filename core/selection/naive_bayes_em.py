"""Expectation maximisation of naive Bayes (Nigam et al. 2000): the classes of unlabeled documents are latent."""

from collections.abc import Generator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.engine.runner import Adjoint, Phase, Report, Request, Scores, Steps
from core.numerics.compiled_elementary import exp, log
from core.problem.result import Linear, Result, Status
from core.selection.class_densities import Moments
from core.selection.data import SelectionData

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_TOLERANCE, _FOLD_TOLERANCE, _MOST_ROUNDS = 1e-3, 1e-2, 200
"""mean change of the responsibilities at which EM has converged, that without the labels of a fold, and most rounds"""


class NaiveBayesEM:
    """One run of expectation maximisation, without the labels of a fold or with all.

    Objective: the negative log-posterior ``−Σ_labeled log p(x | y) − weight (Σ_unlabeled log Σ_c π_c p(x | c) + Σ_c log
    π_c) − Σ_added log p(x | c)`` over the number of documents; of the densities p(x | c) of
    core.selection.class_densities and of the priors π of the classes. Average documents are added to each
    class. Stopping rule: responsibilities that move by less than a thousandth on average; by a hundredth in runs that
    are only compared, without a fold. Source: Nigam, McCallum, Thrun & Mitchell, Text classification from labeled and
    unlabeled documents using EM, 2000, sections 3 and 4, and 5.3.1 for the weight. There are three differences: rows of
    mean square norm 1 instead of counts, which are too sure of themselves; priors of the unlabeled documents alone,
    since labels may have been picked; smoothing by the mean document.
    """

    def __init__(
        self, data: SelectionData, moments: Moments, fold: int, weight: float, start: Matrix | None = None
    ) -> None:
        """Without the labels of this fold; with all labels if no fold has this number.

        ``weight``: that of an unlabeled document, from 0 to 1. ``start``: responsibilities of the unlabeled rows to
        begin with, shape (n_classes, n_unlabeled); None: the first classes are those of the labeled rows alone.
        """
        self.n_labeled, n_rows, n_classes = len(data.class_indices), data.scaled.rows.n_rows, data.n_classes
        self.coefficients: Matrix = np.zeros((n_classes, data.scaled.rows.n_features + 1))
        """θ, shape (n_classes, n_features + 1), the last column the bias"""
        self.logits: Matrix = np.zeros((n_classes, n_rows))
        """θ_c·(x, 1) of all rows, shape (n_classes, n_rows)"""
        self.priors: Vector = np.full(n_classes, 1 / n_classes)
        """π, shape (n_classes,)"""
        self.responsibilities: Matrix = np.zeros((n_classes, n_rows))
        """probabilities of the classes of all rows, shape (n_classes, n_rows)"""
        known = data.folds != fold
        self._labeled = np.flatnonzero(known)
        self.responsibilities[data.class_indices[self._labeled], self._labeled] = 1.0
        self._first_of_all = 1 if start is None else 0
        if start is not None:
            self.responsibilities[:, self.n_labeled :] = start
        self._weight, self._counted = weight, np.full(n_rows, weight)
        self._counted[: self.n_labeled] = known * data.weights
        self._densities = moments.densities(known * data.weights)
        self._tolerance = _FOLD_TOLERANCE if fold < data.n_folds else _TOLERANCE
        self.objective = np.nan
        self.status = Status.ITERATION_LIMIT

    def steps(self) -> Steps:
        """Maximisation and expectation in turn; the result has status and objective alone."""
        total = np.zeros(self.coefficients.shape[1])
        for number in range(_MOST_ROUNDS):
            if number == self._first_of_all:  # before, the unlabeled rows are of no class
                yield Adjoint(self._counted, total)
            yield from self._maximise(total.copy() if number >= self._first_of_all else None)
            moved = self._expect()
            yield Report(Phase("naive_bayes"), number, self.objective, None, (number + 1) / _MOST_ROUNDS)
            if moved < self._tolerance or not self._weight:
                self.status = Status.CONVERGED
                break
        return Result(Linear(np.zeros(0), 0.0), np.zeros(0), self.objective, self.status)

    @cached_property
    def total_coefficients(self) -> Vector:
        """Sum of θ over the classes, shape (n_features + 1,); of a run that has ended."""
        return np.asarray(self.coefficients.sum(axis=0))

    @cached_property
    def total_logits(self) -> Vector:
        """Sum of the logits over the classes, shape (n_rows,); of a run that has ended."""
        return np.asarray(self.logits.sum(axis=0))

    def joint(self) -> Matrix:
        """Logarithms of the joint densities of all rows and each class, shape (n_classes, n_rows)."""
        return np.asarray(self.logits + log(self.priors)[:, None])

    def _maximise(self, left: Vector | None) -> Generator[Request, Any, None]:
        """The M-step: each class's coefficients, and its logits of all rows.

        ``left`` is what the sums of all classes add up to. That of the last is what the others leave of it; without it,
        only labeled rows are of a class.
        """
        last = len(self.coefficients) - 1
        for place, (responsibilities, sums) in enumerate(zip(self.responsibilities, self.coefficients, strict=True)):
            if left is not None and place == last:
                sums[:] = left
                continue
            sums[:] = 0.0
            yield Adjoint(responsibilities * self._counted, sums)
            if left is not None:
                left -= sums
        self._densities.fit(self.coefficients, 0.0 if left is None else self._weight)
        for of_class, logits in zip(self.coefficients, self.logits, strict=True):
            yield Scores(of_class, np.zeros(len(logits)), logits)

    def _expect(self) -> float:
        """The E-step: objective, responsibilities of the unlabeled rows, priors.

        Returns by how much the responsibilities move on average.
        """
        joint = self.logits[:, self.n_labeled :] + log(self.priors)[:, None]
        largest = joint.max(axis=0)
        responsibilities = exp(joint - largest)
        sums = responsibilities.sum(axis=0)
        responsibilities /= sums
        totals = largest + log(sums)
        known = float((self.logits[:, self._labeled] * self.responsibilities[:, self._labeled]).sum())
        unlabeled = self._weight * (float(totals.sum()) + float(log(self.priors).sum()))
        self.objective = (
            -(known + unlabeled + self._densities.common(self.coefficients, self._weight)) / self.logits.shape[1]
        )
        before = self.responsibilities[:, self.n_labeled :]
        moved = np.abs(responsibilities - before).sum() / 2 / max(1, responsibilities.shape[1])
        self.responsibilities[:, self.n_labeled :] = responsibilities
        self.priors = np.asarray(
            (responsibilities.sum(axis=1) + 1) / (responsibilities.shape[1] + len(responsibilities))
        )
        return float(moved)
