"""Label spreading over the graph of nearest neighbours (Zhou et al., Learning with local and global consistency, 2004).

It follows classes that lie on curved sheets, as images do, where no linear boundary can.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from core.engine.requests import Steps
from core.kernels.function import Float32Matrix, Kernel
from core.kernels.gram import dense_copy, squares_of
from core.numerics.elementary import Matrix, Vector
from core.progress import Checkpoint, Phase
from core.selection.candidates import Candidate, ModelSpec, Solvers, Trial, judged
from core.selection.data import SelectionData
from core.selection.held_out import FoldScores, left_out_scores
from core.selection.methods.kernel_regression import known_scores, row_strips
from core.selection.prediction import ERROR, Prediction, predicted_fraction
from core.selection.registry import Method

NEIGHBOURS = 7
_ALPHA, _ITERATIONS = 0.9, 100
"""weight α of a document's neighbours against its own label, and number of iterations: .9¹⁰⁰ is next to nothing"""
_LEAST = 1e-12
"""least label mass of a document, which no label may reach"""


class LabelSpreading:
    """The documents of a selection, the graph of their neighbours, and the spread labels."""

    def __init__(self, data: SelectionData, kernel: Kernel, checkpoint: Checkpoint) -> None:
        """``kernel`` is the kernel of the model of the scores. ``checkpoint`` is called between slices of some million
        operations; the work ends when it raises.
        """
        self._data, self._kernel, self._checkpoint = data, kernel, checkpoint
        self._dense = dense_copy(data.scaled.rows, Kernel("rbf"), checkpoint)
        self._squares = squares_of(self._dense, checkpoint).astype(np.float32)
        self._edges = _adjacency(self._dense, self._squares, checkpoint)
        self._scores = self._spread()

    @property
    def of_two(self) -> FoldScores:
        """The scores of two classes without each fold."""
        n_labeled = len(self._data.class_indices)
        return FoldScores(self._left_out[:, -1], list(self._scores[:-1, n_labeled:, -1]))

    def held_out(self, fractions: Vector) -> Matrix:
        """shape (n_labeled, n_problems): scores of the labeled rows without their labels; NaN where no fold leaves the
        row out. Those of two classes are at these class ``fractions``: without the labels of a fold all odds are
        others. Odds of more classes are compared with each other, as they are.
        """
        if self._data.n_classes > 2:
            return self._left_out
        return self.of_two.at(fractions[-1:], self._data.folds).T

    @property
    def predicted(self) -> Prediction:
        """Prediction for the unlabeled rows by the spread labels of two classes."""
        return Prediction(predicted_fraction(self._scores[-1][len(self._data.class_indices) :, -1]), ERROR)

    def steps(self, column: int, fraction: float) -> Steps:
        """The scores of the unlabeled rows in one two-class problem, of two classes with this fraction above 0. Nothing
        is left to solve, and documents outside the graph have none.

        Objective: the share of the edges that cross between the classes.
        """
        scores, indices, n_labeled = self._scores[-1][:, column], self._edges.indices, len(self._data.class_indices)
        if self._data.n_classes == 2:
            scores = scores - np.quantile(scores[n_labeled:], 1 - fraction)
        crossing = np.repeat(scores > 0, np.diff(self._edges.indptr)) != (scores[indices] > 0)
        return known_scores(Phase("label_spreading"), scores[n_labeled:].copy(), float(crossing.mean()))

    @property
    def _left_out(self) -> Matrix:
        return left_out_scores(self._scores[:, : len(self._data.class_indices)], self._data.folds)

    def _spread(self) -> NDArray[np.float64]:
        """Log-odds of the class of each two-class problem, shape (n_folds + 1, n_rows, n_problems): without each fold,
        and last with all labels. Their mean size around their median is 1 over the unlabeled rows.

        ``F ← α S F + (1 − α) Y`` with S the normalised adjacency matrix. The labels of each class weigh the same in
        total.
        """
        data, n_classes, n_runs = self._data, self._data.n_classes, self._data.n_folds + 1
        seeds = np.zeros((len(self._dense), n_runs, n_classes))
        for fold in range(n_runs):
            labeled = np.flatnonzero(data.folds != fold)
            class_indices = data.class_indices[labeled]
            seeds[labeled, fold, class_indices] = 1 / np.bincount(class_indices, minlength=n_classes)[class_indices]
        start = seeds.reshape(len(seeds), -1)
        spread = np.empty_like(start)
        for part in row_strips(start.shape[1], len(start)):
            own = start[:, part]
            for _ in range(_ITERATIONS):
                own = _ALPHA * (self._edges @ own) + (1 - _ALPHA) * start[:, part]
                self._checkpoint()
            spread[:, part] = own
        scores = np.empty((n_runs, len(start), len(data.positives)))
        for fold in range(n_runs):
            each = spread.reshape(seeds.shape)[:, fold] + _LEAST
            sums = each.sum(axis=1, keepdims=True)
            own = each[:, data.positives]
            scores[fold] = np.log(own) - np.log(np.maximum(sums - own, _LEAST))
            unlabeled = scores[fold, len(data.class_indices) :]
            scores[fold] /= np.maximum(np.abs(unlabeled - np.median(unlabeled, axis=0)).mean(axis=0), _LEAST)
            self._checkpoint()
        return scores


def _adjacency(rows: Float32Matrix, squares: NDArray[np.float32], checkpoint: Checkpoint) -> csr_array:
    """The adjacency matrix, shape (n_rows, n_rows): edges of each row to its nearest ones, both ways, weighed by ``1 /
    √(degree · degree)``.
    """
    n_rows = len(rows)
    nearest = np.empty((n_rows, NEIGHBOURS), np.int64)
    for part in row_strips(n_rows, n_rows):
        distances = squares - 2 * (rows[part] @ rows.T)
        distances[np.arange(len(distances)), np.arange(part.start, part.stop)] = np.inf
        nearest[part] = np.argpartition(distances, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        checkpoint()
    owners = np.repeat(np.arange(n_rows), NEIGHBOURS)
    one_way = csr_array((np.ones(nearest.size), (owners, nearest.ravel())), shape=(n_rows, n_rows))
    edges = csr_array(one_way.maximum(one_way.T))
    roots = np.sqrt(np.diff(edges.indptr))
    edges.data /= np.repeat(roots, np.diff(edges.indptr)) * roots[edges.indices]
    return edges


def try_label_spreading(method: Method, trial: Trial) -> Candidate | None:
    """Label spreading over all features, with its own estimate of the fractions; raises Stopped."""
    if not trial.suits_kernels:
        return None
    trial.begin(method)
    spreading = LabelSpreading(trial.data, trial.kernel, trial.watch)
    own = trial.estimate(spreading.of_two, spreading.predicted)

    def solvers(spec: ModelSpec) -> Solvers:
        return [partial(spreading.steps, column, fraction) for column, fraction in enumerate(spec.positive_fractions)]

    held_out, tried = spreading.held_out(own.fractions), {"neighbours": NEIGHBOURS}
    judgement = judged(trial.data, held_out)
    return Candidate(method.key, method.title, held_out, judgement, solvers, tried, found=own, linear=False)
