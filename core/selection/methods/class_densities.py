"""Densities of documents given their class, for naive Bayes: all features are independent then. Terms are drawn, numbers are normal."""

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.numerics.compiled_elementary import log
from core.numerics.elementary import log_of
from core.numerics.vectors import dot
from core.progress import Checkpoint
from core.selection.data import SelectionData

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SMOOTHING = 10.0
"""average documents that are added to each class, so that nothing is impossible: about as many as are labeled"""
_LEAST = 1e-300
_CONSTANT = 1e-12
"""share of a feature's mean square up to which its variance is rounding"""
_SLICE = 1 << 21


class ClassDensities(Protocol):
    """The densities of all classes. Their logarithms are linear in a row, but for what all classes have in common."""

    def fit(self, sums: Matrix, weight: float) -> None:
        """Turn the sums of the rows of each class, shape (n_classes, n_features + 1), the last column the number of rows, into coefficients of the
        likeliest densities, the last column the intercepts. Each unlabeled row has this ``weight`` in the sums."""

    def common(self, coefficients: Matrix, weight: float) -> float:
        """The part of the log-posterior that the scores of rows leave out: the average rows that are added, and what all classes have in common."""


class TermDensities:
    """Rows are bags of terms: multinomial."""

    def __init__(self, mean: Vector) -> None:
        """``mean``: the average row, shape (n_features,)."""
        self._mean = mean

    def fit(self, sums: Matrix, weight: float) -> None:
        """The logarithms of the terms' probabilities in each class."""
        for of_class in sums:
            counts = np.maximum(of_class[:-1] + SMOOTHING * self._mean, _LEAST)
            of_class[:-1], of_class[-1] = log(counts) - log_of(counts.sum()), 0.0

    def common(self, coefficients: Matrix, weight: float) -> float:
        """Of the average rows that are added to each class."""
        return SMOOTHING * sum(dot(of_class[:-1], self._mean) for of_class in coefficients)


class NormalDensities:
    """Every feature is normal, with a mean for each class and one variance for all of them."""

    def __init__(self, moments: "Moments", of_unlabeled: Vector, known: NDArray[np.bool_]) -> None:
        """``of_unlabeled``, shape (n_features,): sums of squares. ``known``, shape (n_labeled,): the labeled rows that count."""
        everything = moments.of_labeled(np.ones(len(known), bool)) + of_unlabeled
        self._mean, self._added = moments.mean, everything / (len(known) + moments.n_unlabeled)
        self._constant = self._added - self._mean * self._mean <= _CONSTANT * self._added
        self._of_labeled, self._of_unlabeled = moments.of_labeled(known), of_unlabeled
        self._n_labeled, self._n_unlabeled = int(np.count_nonzero(known)), moments.n_unlabeled
        self._precisions: Vector = np.zeros(len(self._mean))

    def fit(self, sums: Matrix, weight: float) -> None:
        """The means of each class over the variances."""
        left, n_rows = self._with_added(len(sums), weight)
        for of_class in sums:
            of_class[-1] += SMOOTHING
            of_class[:-1] = (of_class[:-1] + SMOOTHING * self._mean) / of_class[-1]
            left -= of_class[-1] * of_class[:-1] * of_class[:-1]
        self._precisions = np.where(self._constant, 0.0, n_rows / np.where(self._constant, 1.0, left))
        for of_class in sums:
            means = of_class[:-1].copy()
            of_class[:-1] *= self._precisions
            of_class[-1] = -0.5 * dot(means, of_class[:-1])

    def common(self, coefficients: Matrix, weight: float) -> float:
        """Of the average rows that are added to each class, and the squares over the variances, and the logarithms of these."""
        squares, n_rows = self._with_added(len(coefficients), weight)
        added = SMOOTHING * sum(dot(of_class[:-1], self._mean) + float(of_class[-1]) for of_class in coefficients)
        logs = float(log(np.where(self._constant, 1.0, self._precisions)).sum())
        return added - 0.5 * dot(squares, self._precisions) + 0.5 * n_rows * logs

    def _with_added(self, n_classes: int, weight: float) -> tuple[Vector, float]:
        """Sums of the squares of all rows, and their number; the average rows have the squares of all."""
        n_added = n_classes * SMOOTHING
        squares = self._of_labeled + weight * self._of_unlabeled + n_added * self._added
        return squares, self._n_labeled + weight * self._n_unlabeled + n_added


class Moments:
    """Means, and of numbers sums of squares, by which densities are fitted."""

    def __init__(self, mean: Vector, labeled: SparseRows, of_unlabeled: Vector | None, n_unlabeled: int, checkpoint: Checkpoint) -> None:
        """``mean``: the average row, shape (n_features,). ``of_unlabeled``: sums of squares of the unlabeled rows, None of bags of terms."""
        self.mean, self.n_unlabeled, self.of_unlabeled = mean, n_unlabeled, of_unlabeled
        self._labeled, self._checkpoint = labeled, checkpoint

    @classmethod
    def of(cls, data: SelectionData, checkpoint: Checkpoint) -> Self:
        """Of these data; raises what ``checkpoint`` does."""
        rows, n_labeled = data.scaled.rows, len(data.class_indices)
        squares = _sums(rows.between(n_labeled, rows.n_rows), checkpoint, power=2) if data.dense else None
        return cls(_sums(rows, checkpoint, power=1) / rows.n_rows, rows.between(0, n_labeled), squares, rows.n_rows - n_labeled, checkpoint)

    def of_labeled(self, known: NDArray[np.bool_]) -> Vector:
        """Sums of squares of the labeled rows that are ``known``, shape (n_labeled,)."""
        return _sums(self._labeled, self._checkpoint, power=2, weights=known.astype(np.float64))

    def densities(self, known: NDArray[np.bool_]) -> ClassDensities:
        """Densities that are fitted to the unlabeled rows and the labeled ones that are ``known``, shape (n_labeled,)."""
        return TermDensities(self.mean) if self.of_unlabeled is None else NormalDensities(self, self.of_unlabeled, known)


def _sums(rows: SparseRows, checkpoint: Checkpoint, *, power: int, weights: Vector | None = None) -> Vector:
    """Sums of a power of the features, shape (n_features,), over rows with ``weights``, shape (n_rows,)."""
    sums = np.zeros(rows.n_features)
    for start, stop in rows.slices(_SLICE):
        part = rows.between(start, stop)
        first, last = int(part.indptr[0]), int(part.indptr[-1])
        values = rows.values[first:last].astype(np.float64) ** power
        if weights is not None:
            values *= np.repeat(weights[start:stop], np.diff(part.indptr))
        sums += np.bincount(rows.columns(first, last), values, rows.n_features)
        checkpoint()
    return sums
