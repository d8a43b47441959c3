"""Label spreading over the graph of nearest neighbours (Zhou et al., Learning with local and global consistency, 2004).

It follows classes that lie on curved sheets, as images do, where no linear boundary can. Its scores are compared at
several class fractions like those of the transductive SVM: by labels left out, and by the edges that a fraction cuts.
"""

from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from core.engine.kernel_requests import CheckModelSize
from core.engine.runner import Report, Steps, Stopped, Yield
from core.kernels.function import Float32Matrix, Kernel
from core.kernels.gram import dense_copy, squares_of
from core.numerics import blocked_lapack as dense
from core.problem.result import Expansion, Result, Status
from core.progress import Checkpoint, Phase
from core.selection.candidates import Candidate, ModelSpec, Solvers, Trial, judged
from core.selection.data import SelectionData
from core.selection.fraction_path import FractionPath, shifted_scores
from core.selection.prediction import ERROR, Prediction, predicted_fraction
from core.selection.registry import LANDMARKS, Method

Vector = NDArray[np.float64]

NEIGHBOURS = 7
_ALPHA, _ITERATIONS = 0.9, 100
"""weight α of a document's neighbours against its own label, and number of iterations: .9¹⁰⁰ is next to nothing"""
_LEAST = 1e-12
"""least label mass of a document, which no label may reach"""
_RIDGE = 1e-2
_BLOCK = 1 << 21
"""distances, kernel values and label masses that are computed at once: a tenth of a second where rows are long"""


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
        self._landmarks = _landmarks(len(self._dense), len(data.class_indices))

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
        """A model of the scores of one two-class problem at this fraction, for documents outside the graph: kernel
        ridge regression (RBF).

        Objective: ``ridge |w|² + Σ_k (score_k − f(x_k))²``, f = w·φ(x) + mean score, over at most 2,000 rows.
        """
        rows, n_labeled = self._landmarks, len(self._data.class_indices)
        result = Result(
            Expansion(rows[:0], np.zeros(0), 0.0, self._kernel),
            np.full(len(self._dense) - n_labeled, np.nan),
            np.nan,
            Status.CANCELLED,
        )
        try:
            yield CheckModelSize(rows)
            targets = self._at(self._scores[-1][:, column], np.full(1, fraction))[0, rows]
            mean = float(targets.mean())
            constant = float(((targets - mean) ** 2).sum())
            yield Report(Phase("label_spreading"), 0, constant, constant, 0.0)
            weights = dense.solved(self._factor, dense.solved(self._factor, targets - mean), transposed=True)
            scores = []
            for part in _strips(len(self._dense), len(rows)):
                scores.append(self._values(part) @ weights + mean)
                yield Yield()
            found = np.concatenate(scores)
            off = targets - found[rows]
            # ridge · weights = off, so that ridge |w|² is weights · (targets − mean − off) ridge
            objective = _RIDGE * float(weights @ (targets - mean - off)) + float(off @ off)
            yield Report(Phase("label_spreading"), 1, objective, objective, 1.0)
        except Stopped:
            return result
        return Result(Expansion(rows, weights, mean, self._kernel), found[n_labeled:], objective, Status.CONVERGED)

    @cached_property
    def _factor(self) -> dense.Matrix:
        """Lower Cholesky factor of the landmarks' kernel matrix plus the ridge; raises Stopped."""
        rows = self._landmarks
        matrix = np.empty((len(rows), len(rows)))
        for part in _strips(len(rows), len(rows)):
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
        for part in _strips(start.shape[1], len(start)):
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


def _landmarks(n_rows: int, n_labeled: int) -> NDArray[np.int64]:
    """The rows that a model keeps, ascending: all if they are few, else evenly spaced labeled ones, at most half, and
    unlabeled ones.
    """
    if n_rows <= LANDMARKS:
        return np.arange(n_rows)
    labeled = max(min(n_labeled, LANDMARKS // 2), LANDMARKS - (n_rows - n_labeled))
    ranges = (0, n_labeled - 1, labeled), (n_labeled, n_rows - 1, LANDMARKS - labeled)
    return np.concatenate([np.linspace(first, last, count).astype(np.int64) for first, last, count in ranges])


def _strips(n: int, width: int) -> list[slice]:
    """Ranges that make up 0 to n, each of as many rows of this width as are computed at once."""
    height = max(1, _BLOCK // width)
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]


def _adjacency(rows: Float32Matrix, squares: NDArray[np.float32], checkpoint: Checkpoint) -> csr_array:
    """The adjacency matrix, shape (n_rows, n_rows): edges of each row to its nearest ones, both ways, weighed by ``1 /
    √(degree · degree)``.
    """
    n_rows = len(rows)
    nearest = np.empty((n_rows, NEIGHBOURS), np.int64)
    for part in _strips(n_rows, n_rows):
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
