"""Kernel ridge regression of the labels, over a radial basis function of the distance (RBF), as a candidate for dense
rows.

It follows boundaries that no linear method can, and needs no clusters. Unlabeled documents have a part in the scale of
its features and in the class fractions alone.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows, to_dense
from core.engine.requests import Steps
from core.kernels.function import Kernel
from core.numerics import blocked_lapack as dense
from core.numerics.elementary import Matrix, Vector
from core.progress import Checkpoint, Phase
from core.selection.candidates import Candidate, ModelSpec, Solvers, Trial, judged
from core.selection.data import SelectionData
from core.selection.held_out import FoldScores, left_out_scores
from core.selection.methods.kernel_regression import known_scores
from core.selection.prediction import Prediction, centred_prediction, judge
from core.selection.registry import Method

WIDTHS = (0.5, 2.0, 8.0)
"""values of γ that are tried, in units of that by the median of the distances"""
RIDGES = (1.0, 0.1, 0.01)
"""weights of |w|² that are tried"""
_LEAST = 1e-12
_BLOCK = 1 << 21
"""kernel values, and numbers of dense rows, that are computed at once"""


class Setting(NamedTuple):
    """A kernel and the weight of |w|²."""

    kernel: Kernel
    ridge: float


class KernelRidge:
    """Kernel ridge regression with the kernel and the ridge by which labels left out are likeliest, of equals the
    smoother.

    Scores have a mean size of 1 around their median, like those of other candidates: little is certain of few labels,
    so values of w·φ(x) are small. Objective of a two-class problem: ``ridge |w|² + Σ_i c_i (y_i − w·φ(x_i))²``. The
    costs c of all classes are the same in total, and 1 on average. So one factorisation serves all two-class problems.
    Source: Saunders, Gammerman & Vovk, Ridge regression learning algorithm in dual variables, 1998.
    """

    def __init__(self, data: SelectionData, median: Kernel, checkpoint: Checkpoint) -> None:
        """``median`` is the radial kernel of the median distance. ``checkpoint`` is called between slices of some
        million operations; the work ends when it raises.
        """
        self._data, self._checkpoint = data, checkpoint
        labeled = _dense_rows(data.scaled.rows.between(0, len(data.class_indices)))
        products, squares = labeled @ labeled.T, _squares(labeled)
        tried = [Setting(median._replace(gamma=median.gamma * width), ridge) for width in WIDTHS for ridge in RIDGES]
        self.best = max(
            tried, key=lambda each: self._likelihood(_values(each.kernel, products, squares, squares), each.ridge)
        )
        values = _values(self.best.kernel, products, squares, squares)
        self._weights = np.array([self._fitted(values, self.best.ridge, fold) for fold in range(data.n_folds + 1)])
        self._unlabeled = self._scores(labeled)
        self._deviations = _deviations(self._unlabeled[-1])
        self._unlabeled /= self._deviations
        self._weights /= self._deviations
        self._labeled = values @ self._weights

    @property
    def held_out(self) -> Matrix:
        """shape (n_labeled, n_problems): scores of the labeled rows by fits without their fold.

        NaN where no fold leaves the row out.
        """
        return left_out_scores(self._labeled, self._data.folds)

    @property
    def predicted(self) -> Prediction:
        """Prediction for the unlabeled rows by the scores of two classes, centred by labels left out."""
        return centred_prediction(
            self._unlabeled[-1][:, -1], self.held_out[:, -1], self._data.class_indices, self._data.balanced
        )

    @property
    def of_two(self) -> FoldScores:
        """The scores of two classes without each fold."""
        return FoldScores(self.held_out[:, -1], list(self._unlabeled[:-1, :, -1]))

    def steps(self, column: int) -> Steps:
        """The scores of the unlabeled rows in one two-class problem. Nothing is left to solve."""
        weights, y = self._weights[-1, :, column], self._data.problems[column].y
        # of weights before they are scaled: (K + ridge / c) weights = y, and ridge |w|² = ridge weights · K weights
        values, size = self._labeled[-1, :, column] * self._deviations[column], self._deviations[column]
        off = y - values
        objective = float(self.best.ridge * size * (weights @ values) + _costs(self._data.class_indices) @ (off * off))
        return known_scores(Phase("kernel_ridge"), self._unlabeled[-1, :, column].copy(), objective)

    def _likelihood(self, values: Matrix, ridge: float) -> float:
        """The log-likelihood of labels left out."""
        data, left_out = self._data, self._data.left_out
        labeled = values @ np.array([self._fitted(values, ridge, fold) for fold in range(data.n_folds)]).reshape(
            -1, len(values), len(data.problems)
        )
        scores = left_out_scores(labeled, data.folds)[left_out]
        return judge(scores / _deviations(scores), data.class_indices[left_out], data.weights[left_out]).log_likelihood

    def _fitted(self, values: Matrix, ridge: float, fold: int) -> Matrix:
        """w as weights of the labeled rows, shape (n_labeled, n_problems), 0 within the fold:
        ``(K + ridge / c) weights = y``.
        """
        kept = np.flatnonzero(self._data.folds != fold)
        matrix, weights = values[np.ix_(kept, kept)], np.zeros((len(values), len(self._data.problems)))
        matrix[np.diag_indices_from(matrix)] += ridge / _costs(self._data.class_indices[kept])
        for _ in dense.cholesky(matrix):
            self._checkpoint()
        for column, problem in enumerate(self._data.problems):
            weights[kept, column] = dense.solved(matrix, dense.solved(matrix, problem.y[kept]), transposed=True)
        return weights

    def _scores(self, labeled: Matrix) -> NDArray[np.float64]:
        """Scores of the unlabeled rows without each fold and with all labels, shape (n_folds + 1, n_unlabeled,
        n_problems).
        """
        rows, squares, found = self._data.scaled.rows, _squares(labeled), []
        for part in _strips(rows.between(len(labeled), rows.n_rows), len(labeled)):
            own = _dense_rows(part)
            found.append(_values(self.best.kernel, own @ labeled.T, _squares(own), squares) @ self._weights)
            self._checkpoint()
        return np.concatenate(found, axis=1)


def _deviations(scores: Matrix) -> Vector:
    """The mean size of scores around their median, by columns."""
    return (
        np.asarray(np.maximum(np.abs(scores - np.median(scores, axis=0)).mean(axis=0), _LEAST))
        if len(scores)
        else np.ones(scores.shape[1])
    )


def _values(kernel: Kernel, products: Matrix, left: Vector, right: Vector) -> Matrix:
    """Kernel values of rows with these inner products and squares, in a copy."""
    values = products.copy()
    kernel.apply_to_products(values, left, right)
    return values


def _costs(class_indices: NDArray[np.integer[Any]]) -> Vector:
    """The cost of each label."""
    counts = np.bincount(class_indices)
    return np.asarray(len(class_indices) / np.count_nonzero(counts) / counts[class_indices])


def _dense_rows(rows: SparseRows) -> Matrix:
    return to_dense(rows, rows.columns(int(rows.indptr[0]), int(rows.indptr[-1]))).astype(np.float64)


def _squares(rows: Matrix) -> Vector:
    """|x|² of each row."""
    return np.asarray((rows * rows).sum(axis=1))


def _strips(rows: SparseRows, width: int) -> Iterator[SparseRows]:
    """The rows, at most so many at a time as have some million kernel values, and numbers."""
    height = max(1, _BLOCK // max(1, width, rows.n_features))
    return (rows.between(start, min(start + height, rows.n_rows)) for start in range(0, rows.n_rows, height))


def try_kernel_ridge(method: Method, trial: Trial) -> Candidate | None:
    """Kernel ridge regression over all features, with its own estimate of the fractions; raises Stopped."""
    if not trial.suits_kernels:
        return None
    trial.begin(method)
    fitted = KernelRidge(trial.data, trial.kernel, trial.watch)
    own = trial.estimate(fitted.of_two, fitted.predicted)

    def solvers(spec: ModelSpec) -> Solvers:
        return [partial(fitted.steps, column) for column in range(len(spec.data.problems))]

    return Candidate(
        method.key,
        method.title,
        fitted.held_out,
        judged(trial.data, fitted.held_out),
        solvers,
        {"best_gamma": fitted.best.kernel.gamma, "ridge": list(RIDGES), "best_ridge": fitted.best.ridge},
        found=own,
        linear=False,
        uses_unlabeled=False,
    )
