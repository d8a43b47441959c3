"""Label spreading over the graph of nearest neighbours (Zhou et al., Learning with local and global consistency, 2004).

It follows classes that lie on curved sheets, as images do, where no linear boundary can. Its scores are compared at
several class fractions like those of the transductive SVM: by labels left out, and by the edges that a fraction cuts.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from core.engine.requests import Steps, Vector
from core.kernels.function import Float32Matrix, Kernel
from core.kernels.gram import dense_copy, squares_of
from core.progress import Checkpoint, Phase
from core.selection.candidates import Candidate, ModelSpec, Solvers, Trial, judged
from core.selection.data import SelectionData
from core.selection.fraction_path import FractionPath, shifted_scores
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

    def paths(self, grids: Sequence[Vector]) -> list[list[FractionPath]]:
        """For each two-class problem the paths over its grid without each fold, and last the one with all labels
        (core.selection.fraction_path).
        """
        return [
            [self._path(column, fold, grid) for fold in range(self._data.n_folds + 1)]
            for column, grid in enumerate(grids)
        ]

    @property
    def predicted(self) -> Prediction:
        """Prediction for the unlabeled rows by the spread labels of two classes."""
        return Prediction(predicted_fraction(self._scores[-1][len(self._data.class_indices) :, -1]), ERROR)

    def steps(self, column: int, fraction: float) -> Steps:
        """The scores of the unlabeled rows in one two-class problem at this fraction. Nothing is left to solve, and
        documents outside the graph have none.

        Objective: the share of the edges that cross between the classes.
        """
        scores = self._at(self._scores[-1][:, column], np.full(1, fraction))[0]
        return known_scores(
            Phase("label_spreading"), scores[len(self._data.class_indices) :].copy(), self._cut(scores > 0)
        )

    def _spread(self) -> NDArray[np.float64]:
        """Log-odds of the class of each two-class problem, shape (n_folds + 1, n_rows, n_problems): without each fold,
        and last with all labels.

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
            self._checkpoint()
        return scores

    def _path(self, column: int, fold: int, grid: Vector) -> FractionPath:
        path, scores = FractionPath(grid), self._at(self._scores[fold][:, column], grid)
        path.labeled = scores[
            :, : len(self._data.class_indices)
        ].copy()  # without the other rows: there are as many paths as classes times folds
        path.objectives = np.array([self._cut(each > 0) for each in scores])
        self._checkpoint()
        return path

    def _at(self, log_odds: Vector, fractions: Vector) -> NDArray[np.float64]:
        """Scores, shape (n_fractions, n_rows), of mean size 1 around the median, with these fractions of the unlabeled
        rows above 0.
        """
        unlabeled = log_odds[len(self._data.class_indices) :]
        above = shifted_scores(log_odds, unlabeled, fractions)
        return np.asarray(above / max(float(np.abs(unlabeled - np.median(unlabeled)).mean()), _LEAST))

    def _cut(self, sides: NDArray[np.bool_]) -> float:
        """The share of the edges that cross between the ``sides`` of rows, shape (n_rows,): 2 r (1 − r) if sides are
        independent of the neighbours.
        """
        owners = np.repeat(sides, np.diff(self._edges.indptr))
        return (float(np.count_nonzero(owners != sides[self._edges.indices])) + 1) / (self._edges.nnz + 1)


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
    own = trial.estimate(spreading.paths(trial.grids), spreading.predicted)

    def solvers(spec: ModelSpec) -> Solvers:
        return [partial(spreading.steps, column, fraction) for column, fraction in enumerate(spec.positive_fractions)]

    judgement, tried = judged(trial.data, own.held_out), {"neighbours": NEIGHBOURS}
    return Candidate(method.key, method.title, own.held_out, judgement, solvers, tried, found=own, linear=False)
