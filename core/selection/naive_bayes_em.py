"""Naive Bayes: densities of documents given their class, and expectation maximisation (Nigam et al. 2000).

All features are independent given the class: terms are drawn, numbers are normal. The classes of unlabeled documents
are latent.
"""

from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.engine.requests import Adjoint, Adjoints, AllScores, Procedure, Report, Scores, Steps
from core.numerics.compiled import compiled, exp, log, read_only
from core.numerics.compiled import log_of as compiled_log_of
from core.numerics.elementary import Matrix, Vector, log_of
from core.numerics.vectors import dot
from core.numerics.width import WIDTH
from core.problem import Linear, Result, Status
from core.progress import Checkpoint, Phase
from core.selection.data import SelectionData, mean_squares

SMOOTHING = 10.0
"""average documents that are added to each class, so that nothing is impossible: about as many as are labeled"""
_LEAST = 1e-300
_CONSTANT = 1e-12
"""share of a feature's mean square up to which its variance is rounding"""
_SLICE = 1 << 21
_HARDLY = 1e-6
"""number of times that a row is in a class from which on it would matter to leave it out"""
_MOST_SHARE = 1 - 1e-9
"""largest share of a row in a class's count of a term; more is rounding"""


class TermDensities:
    """Rows are bags of terms: multinomial. A row is among those that its terms are counted in, and no new row is.
    Terms of few rows would bind these to the class that they were first in: each counts as far as it is of others.
    """

    def __init__(self, moments: "Moments") -> None:
        """So many of the average row of ``moments`` are added to each class as these say."""
        self._moments = moments
        self._totals: list[float] = []

    def fit(self, sums: Matrix, weight: float) -> None:
        """The logarithms of the terms' probabilities in each class."""
        worths, added = self._moments.term_worths, self._moments.added * self._moments.mean
        self._totals.clear()
        for of_class in sums:
            counts = worths * np.maximum(of_class[:-1] + added, _LEAST)
            self._totals.append(max(float(counts.sum()), _LEAST))
            logs = log(np.where(worths > 0.0, counts, 1.0)) - log_of(self._totals[-1])
            of_class[:-1], of_class[-1] = worths * logs, 0.0
            self._moments.checkpoint()

    def common(self, coefficients: Matrix, weight: float) -> float:
        """Of the average rows that are added to each class."""
        return sum(dot(of_class[:-1], self._moments.added * self._moments.mean) for of_class in coefficients)

    def leave_out(self, coefficients: Matrix, counted: Matrix, logits: Matrix) -> None:
        """Without the counts of a row its terms are rarer in the class, and the class is smaller."""
        rows, worths = self._moments.unlabeled, self._moments.term_worths
        divisors = np.where(worths > 0.0, worths, 1.0)
        for start, stop in rows.slices(_SLICE):
            part = rows.between(start, stop)
            first, last = int(part.indptr[0]), int(part.indptr[-1])
            own = read_only(rows.columns(first, last))
            values = worths[own] * rows.values[first:last]
            for place, total in enumerate(self._totals):
                counts = np.where(worths > 0.0, total * exp(coefficients[place, :-1] / divisors), 0.0)
                span = place, slice(start, stop)
                _leave_out(read_only(part.indptr), own, values, counted[span], counts, total, logits[span])
                self._moments.checkpoint()


class NormalDensities:
    """Every feature is normal, with a mean for each class and one variance for all of them.

    All is relative to the average row.
    """

    def __init__(self, moments: "Moments", of_labeled: Vector, n_labeled: float) -> None:
        """``of_labeled``, shape (n_features,): squares of the labeled rows about the average row, and their number,
        both by weights.
        """
        self._moments, self._of_labeled, self._n_labeled = moments, of_labeled, n_labeled
        self._precisions: Vector = np.zeros(len(of_labeled))

    def fit(self, sums: Matrix, weight: float) -> None:
        """The means of each class over the variances."""
        mean, constant = self._moments.mean, self._moments.constant
        left, n_rows = self._with_added(len(sums), weight)
        least = len(sums) * self._moments.added * self._moments.variances
        for of_class in sums:
            n_own = of_class[-1] + self._moments.added
            of_class[:-1] = (of_class[:-1] - of_class[-1] * mean) / n_own
            left -= n_own * of_class[:-1] * of_class[:-1]
            self._moments.checkpoint()
        self._precisions = np.where(constant, 0.0, n_rows / np.where(constant, 1.0, np.maximum(left, least)))
        for of_class in sums:
            means = of_class[:-1].copy()
            of_class[:-1] *= self._precisions
            of_class[-1] = -dot(mean + 0.5 * means, of_class[:-1])
            self._moments.checkpoint()

    def common(self, coefficients: Matrix, weight: float) -> float:
        """Of the average rows that are added to each class, and the squares over the variances, and the logarithms of
        these.
        """
        squares, n_rows = self._with_added(len(coefficients), weight)
        added = self._moments.added * sum(
            dot(of_class[:-1], self._moments.mean) + float(of_class[-1]) for of_class in coefficients
        )
        logs = float(log(np.where(self._moments.constant, 1.0, self._precisions)).sum())
        return added - 0.5 * dot(squares, self._precisions) + 0.5 * n_rows * logs

    def leave_out(self, coefficients: Matrix, counted: Matrix, logits: Matrix) -> None:
        """Rows of numbers stay: what it is worth to leave them out was measured of terms alone."""

    def _with_added(self, n_classes: int, weight: float) -> tuple[Vector, float]:
        """Squares of all rows about the average row, and their number; the average rows have the variances of all."""
        n_added = n_classes * self._moments.added
        squares = self._of_labeled + weight * self._moments.of_unlabeled + n_added * self._moments.variances
        return squares, self._n_labeled + weight * self._moments.n_unlabeled + n_added


ClassDensities = TermDensities | NormalDensities
"""The densities of all classes. Their logarithms are linear in a row, but for a term that all classes share.

``fit`` turns the sums of the rows of each class into coefficients of the likeliest densities, in place; the checkpoint
may raise. ``sums`` have the shape (n_classes, n_features + 1). Their last column is the number of rows, that of the
coefficients the intercept. Each unlabeled row has the ``weight`` in the sums.

``common`` is the part of the log-posterior that the scores of rows leave out: the average rows that are added, and the
term that all classes share. ``coefficients``, shape (n_classes, n_features + 1), are those of the last fit.

``leave_out`` turns the ``logits`` of the unlabeled rows, shape (n_classes, n_unlabeled), into those by the densities of
all other rows, in place. Each row is ``counted`` so many times in each class, of the same shape."""


class Moments:
    """The average row, and of rows of numbers the squares about it, by which densities are fitted."""

    def __init__(self, data: SelectionData, checkpoint: Checkpoint, added: float = SMOOTHING) -> None:
        """Of all rows; ``checkpoint`` may raise. So many average rows are ``added`` to each class."""
        rows, n_labeled = data.scaled.rows, len(data.class_indices)
        self.checkpoint, self.added, self._dense = checkpoint, added, data.dense
        self.n_unlabeled = rows.n_rows - n_labeled
        self._labeled, self.unlabeled = rows.between(0, n_labeled), rows.between(n_labeled, rows.n_rows)
        sums, stored = _sums(rows, checkpoint)
        self.mean = sums / rows.n_rows
        """shape (n_features,)"""
        energies, others = mean_squares(rows, checkpoint, centred=False)[0], 1.0 - 1.0 / np.maximum(stored, 1.0)
        self.term_worths = others / np.sqrt(max(dot(energies, others * others), _LEAST))
        """shape (n_features,): what terms count, of n rows in proportion to ``1 − 1/n``, the share of them that are
        others to each; all together so that the mean square norm of the rows is 1"""
        nothing = np.zeros(0)
        self.of_unlabeled = self._squares(self.unlabeled, np.ones(self.n_unlabeled)) if self._dense else nothing
        """shape (n_features,): sums of squares of the unlabeled rows about the average row; empty of bags of terms, as
        all below"""
        everything = self.of_unlabeled + self._squares(self._labeled, np.ones(n_labeled)) if self._dense else nothing
        self.variances = everything / rows.n_rows
        """shape (n_features,): of all rows"""
        self.constant = (
            self.variances <= _CONSTANT * (self.variances + self.mean * self.mean) if self._dense else nothing > 0
        )
        """shape (n_features,): whether the variance is nothing but rounding"""

    def densities(self, counted: Vector) -> ClassDensities:
        """Densities that are fitted to the unlabeled rows and the labeled ones, each of which is ``counted`` so many
        times, shape (n_labeled,)."""
        if not self._dense:
            return TermDensities(self)
        return NormalDensities(self, self._squares(self._labeled, counted), float(counted.sum()))

    def _squares(self, rows: SparseRows, weights: Vector) -> Vector:
        """Sums of squares about the average row, shape (n_features,), over rows with ``weights``, shape (n_rows,)."""
        squares, stored = np.zeros(rows.n_features), np.zeros(rows.n_features)
        for start, stop in rows.slices(_SLICE):
            part = rows.between(start, stop)
            first, last = int(part.indptr[0]), int(part.indptr[-1])
            columns, own = rows.columns(first, last), np.repeat(weights[start:stop], np.diff(part.indptr))
            off = rows.values[first:last] - self.mean[columns]
            squares += np.bincount(columns, own * off * off, rows.n_features)
            stored += np.bincount(columns, own, rows.n_features)
            self.checkpoint()
        return np.asarray(squares + (weights.sum() - stored) * self.mean * self.mean)


def _sums(rows: SparseRows, checkpoint: Checkpoint) -> tuple[Vector, Vector]:
    """Sums of the features, and numbers of rows that have a value of each, shape (n_features,)."""
    sums, stored = np.zeros(rows.n_features), np.zeros(rows.n_features)
    for start, stop in rows.slices(_SLICE):
        first, last = int(rows.indptr[start]), int(rows.indptr[stop])
        columns, values = rows.columns(first, last), rows.values[first:last]
        sums += np.bincount(columns, values, rows.n_features)
        stored += np.bincount(columns[values != 0], minlength=rows.n_features)
        checkpoint()
    return sums, stored


_TOLERANCE, _FOLD_TOLERANCE, _MOST_ROUNDS = 1e-3, 1e-2, 200
"""mean change of the responsibilities at which EM has converged, that without the labels of a fold, and most rounds"""


class NaiveBayesEM:
    """One run of expectation maximisation, without the labels of a fold or with all.

    Objective: the negative log-posterior ``−Σ_labeled log p(x | y) − weight (Σ_unlabeled log Σ_c π_c p(x | c) + Σ_c log
    π_c) − Σ_added log p(x | c)`` over the number of documents; of the densities p(x | c) and of the priors π of the
    classes. Average documents are added to each class. Stopping rule: responsibilities that move by less than a
    thousandth on average; by a hundredth in runs that are only compared, without a fold. Source: Nigam, McCallum,
    Thrun & Mitchell, Text classification from labeled and unlabeled documents using EM, 2000, sections 3 and 4, and
    5.3.1 for the weight. There are four differences: rows of mean square norm 1 instead of counts, which are too
    sure of themselves; terms of few rows that count less; priors of the unlabeled documents alone, since labels may
    have been picked; smoothing by the mean document.
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
        """θ_c·(x, 1) of all rows, shape (n_classes, n_rows); of a run that has ended, those of the unlabeled rows as if
        each were new: by densities that are fitted to all others"""
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
            fitted = self.responsibilities[:, self.n_labeled :] * self._weight
            moved = self._expect()
            yield Report(Phase("naive_bayes"), number, self.objective, None, (number + 1) / _MOST_ROUNDS)
            if moved < self._tolerance or not self._weight:
                self.status = Status.CONVERGED
                break
        # a document's own counts make it like its class, and no new document has any among those that were learned from
        self._densities.leave_out(self.coefficients, fitted, self.logits[:, self.n_labeled :])
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

    def _maximise(self, left: Vector | None) -> Procedure[None]:
        """The M-step: each class's coefficients, and its logits of all rows.

        ``left`` is what the sums of all classes add up to. That of the last is what the others leave of it; without it,
        only labeled rows are of a class.
        """
        known = len(self.coefficients) - (left is not None)
        self.coefficients[:known] = 0.0
        for first in range(0, known, WIDTH):
            block = slice(first, min(first + WIDTH, known))
            weights = self.responsibilities[block] * self._counted
            yield Adjoints([Adjoint(*each) for each in zip(weights, self.coefficients[block], strict=True)])
        if left is not None:
            self.coefficients[known] = reduce(np.subtract, self.coefficients[:known], left)
        self._densities.fit(self.coefficients, 0.0 if left is None else self._weight)
        none = np.zeros(self.logits.shape[1])
        yield AllScores(
            [Scores(of_class, none, logits) for of_class, logits in zip(self.coefficients, self.logits, strict=True)]
        )

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


@compiled
def _leave_out(
    indptr: NDArray[np.int64],
    columns: NDArray[np.uint32],
    values: Vector,
    counted: Vector,
    counts: Vector,
    total: float,
    logits: Vector,
) -> None:
    """TermDensities.leave_out of a range of rows, whose ``values`` and ``counts`` are by the worths of terms.
    ``counts``, shape (n_features,), are those of the class and of the average rows that are added to it, 0 of terms
    that count nothing; ``total`` is their sum.

    Rows that the class hardly has are left as they are.
    """
    first = np.uintp(indptr[0])
    for i in range(len(counted)):
        if counted[i] < _HARDLY:
            continue
        change, size = 0.0, 0.0
        for k in range(np.uintp(indptr[i]) - first, np.uintp(indptr[i + 1]) - first):
            value = values[k]
            count = counts[np.uintp(columns[k])]
            if count > 0.0:
                size += value
                change += value * compiled_log_of(1.0 - min(counted[i] * value / count, _MOST_SHARE))
        logits[i] += change - size * compiled_log_of(1.0 - min(counted[i] * size / total, _MOST_SHARE))
