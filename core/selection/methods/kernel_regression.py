"""Kernel ridge regression of known scores: the model of a sum that is not linear, for documents outside the training.

Some candidates score the documents of the training alone, others by kernels of different widths. One kernel model of
their sum predicts any document.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.engine.requests import CheckModelSize, Report, Steps, Vector, Yield, known_result
from core.kernels.function import Float32Matrix, Kernel
from core.kernels.gram import dense_copy, squares_of
from core.numerics import blocked_lapack as dense
from core.problem import Expansion, Result, Status
from core.progress import Checkpoint, Phase, Stopped
from core.selection.data import SelectionData
from core.selection.registry import LANDMARKS

_RIDGE = 1e-2
_BLOCK = 1 << 21
"""kernel values that are computed at once"""


class KernelRegression:
    """Kernel ridge regression of the scores of all rows over at most 2,000 of them."""

    def __init__(
        self, data: SelectionData, targets: NDArray[np.float64], kernel: Kernel, checkpoint: Checkpoint
    ) -> None:
        """``targets``, shape (n_rows, n_problems), are the scores; rows without them are NaN. ``checkpoint`` is called
        between slices of some million operations; the work ends when it raises.
        """
        self._targets, self._kernel, self._checkpoint = targets, kernel, checkpoint
        self._n_labeled = len(data.class_indices)
        self._dense = dense_copy(data.scaled.rows, kernel, checkpoint)
        self._squares = squares_of(self._dense, checkpoint).astype(np.float32)
        known = np.flatnonzero(np.isfinite(targets).all(axis=1))
        self._landmarks = known[_landmarks(len(known), int(np.count_nonzero(known < self._n_labeled)))]

    def steps(self, column: int) -> Steps:
        """The model of one two-class problem.

        Objective: ``ridge |w|² + Σ_k (score_k − f(x_k))²``, f = w·φ(x) + mean score, over the landmarks. The scores of
        the unlabeled rows are those of the model.
        """
        rows, targets = self._landmarks, self._targets[self._landmarks, column]
        mean = float(targets.mean())
        constant = float(((targets - mean) ** 2).sum())
        unlabeled = self._targets[self._n_labeled :, column]
        result = Result(Expansion(rows[:0], np.zeros(0), mean, self._kernel), unlabeled, constant, Status.CANCELLED)
        try:
            yield CheckModelSize(rows)
            yield Report(Phase("regression"), 0, constant, constant, 0.0)
            weights = dense.solved(self._factor, dense.solved(self._factor, targets - mean), transposed=True)
            scores = []
            for part in row_strips(len(self._dense), len(rows)):
                scores.append(self._values(part) @ weights + mean)
                yield Yield()
            found = np.concatenate(scores)
            off = targets - found[rows]
            # ridge · weights = off, so that ridge |w|² is weights · (targets − mean − off) ridge
            objective = _RIDGE * float(weights @ (targets - mean - off)) + float(off @ off)
            yield Report(Phase("regression"), 1, objective, objective, 1.0)
        except Stopped:
            return result
        decision = Expansion(rows, weights, mean, self._kernel)
        return Result(decision, found[self._n_labeled :], objective, Status.CONVERGED)

    @cached_property
    def _factor(self) -> dense.Matrix:
        """Lower Cholesky factor of the landmarks' kernel matrix plus the ridge; raises Stopped."""
        rows = self._landmarks
        matrix = np.empty((len(rows), len(rows)))
        for part in row_strips(len(rows), len(rows)):
            matrix[part] = self._values(rows[part])
            self._checkpoint()
        matrix[np.diag_indices_from(matrix)] += _RIDGE
        for _ in dense.cholesky(matrix):
            self._checkpoint()
        return matrix

    def _values(self, rows: slice | NDArray[np.int64]) -> Float32Matrix:
        """Kernel values of rows with the landmarks, shape (n, n_landmarks)."""
        products = self._dense[rows] @ self._dense[self._landmarks].T
        self._kernel.apply_to_products(products, self._squares[rows], self._squares[self._landmarks])
        return products


def known_scores(phase: Phase, scores: Vector, objective: float) -> Steps:
    """The result of a method that knows the ``scores`` of the unlabeled rows of a two-class problem, and no others."""
    nothing = Expansion(np.zeros(0, np.int64), np.zeros(0), 0.0, Kernel("rbf"))
    return known_result(Result(nothing, scores, objective, Status.CONVERGED), phase)


def row_strips(n: int, width: int) -> list[slice]:
    """Ranges that make up 0 to n, each of as many rows of this width as are computed at once."""
    height = max(1, _BLOCK // width)
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]


def _landmarks(n_rows: int, n_labeled: int) -> NDArray[np.int64]:
    """The rows that a model keeps, ascending: all if they are few, else evenly spaced labeled ones, at most half, and
    unlabeled ones.
    """
    if n_rows <= LANDMARKS:
        return np.arange(n_rows)
    labeled = max(min(n_labeled, LANDMARKS // 2), LANDMARKS - (n_rows - n_labeled))
    ranges = (0, n_labeled - 1, labeled), (n_labeled, n_rows - 1, LANDMARKS - labeled)
    return np.concatenate([np.linspace(first, last, count).astype(np.int64) for first, last, count in ranges])
