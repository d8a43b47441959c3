"""Near neighbours: classes that lie on curved sheets, as images do, where no linear boundary follows them.

Labels spread over the graph of each document's nearest neighbours (Zhou et al., Learning with local and global consistency, 2004). The scores are
compared at several fractions like those of the transductive SVM: by the labels left out, and by the edges that a fraction cuts.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from core.kernel.gram import resolved
from core.kernel.requests import Keep
from core.result import Expansion, Result, Status
from core.rows import SparseRows
from core.selection.bounds import LANDMARKS
from core.selection.estimate import shares_of
from core.selection.folds import N_FOLDS
from core.selection.path import Path
from core.selection.study import Study
from core.sweeps import Pause, Steps, Stopped

Vector = NDArray[np.float64]

NEIGHBOURS = 7
_PULL, _ROUNDS = 0.9, 100
"""how much of a document's belief is its neighbours', and how often it is asked for: .9¹⁰⁰ is next to nothing"""
_UNREACHED = 1e-12
_RIDGE = 1e-2
_BLOCK = 1 << 21
_HEIGHT = _BLOCK // LANDMARKS


class Graph:
    """The documents of a study, their neighbours and how the labels spread."""

    def __init__(self, study: Study, between: Callable[[], None]) -> None:
        """``between`` is called between parts of some million operations; what it raises ends the work."""
        self._study, self._between = study, between
        self._dense = _dense(study.prepared.rows)
        self._edges = _neighbours(self._dense, between)
        self._scores = self._spread()
        self._landmarks = _landmarks(len(self._dense), len(study.codes))
        self._kernel = resolved("rbf", "median", 3, 0.0, study.prepared.rows)

    def paths(self, grids: Sequence[Vector]) -> list[list[Path]]:
        """For each two-class problem the paths over its grid without each fold, and last that with all labels; see core.selection.path."""
        return [[self._path(column, fold, grid) for fold in range(N_FOLDS + 1)] for column, grid in enumerate(grids)]

    @property
    def predicted(self) -> list[float]:
        """The share of the unlabeled rows whose neighbourhood is for the class of each two-class problem."""
        return shares_of(self._scores[N_FOLDS][len(self._study.codes) :])

    def steps(self, column: int, fraction: float) -> Steps:
        """A model of the scores of one two-class problem at this fraction: an expansion in an RBF kernel, for documents that are not in the graph.

        Objective: ``ridge |w|² + Σ_k (score_k − f(x_k))²``, f = w·φ(x) + mean score, over at most 2,000 rows.
        """
        rows, n_labeled = self._landmarks, len(self._study.codes)
        result = Result(Expansion(rows[:0], np.zeros(0), 0.0, self._kernel), np.full(len(self._dense) - n_labeled, np.nan), np.nan, Status.CANCELLED)
        try:
            yield Keep(rows)
            targets = self._at(self._scores[N_FOLDS][:, column], fraction)[rows]
            mean = float(targets.mean())
            weights = cho_solve(self._factor, targets - mean)
            scores = []
            for start in range(0, len(self._dense), _HEIGHT):
                scores.append(self._values(slice(start, start + _HEIGHT)) @ weights + mean)
                yield Pause()
        except Stopped:
            return result
        found = np.concatenate(scores)
        off = targets - found[rows]
        # ridge · weights = off, so that ridge |w|² is weights · (targets − mean − off) ridge
        objective = _RIDGE * float(weights @ (targets - mean - off)) + float(off @ off)
        return Result(Expansion(rows, weights, mean, self._kernel), found[n_labeled:], objective, Status.CONVERGED)

    @cached_property
    def _factor(self) -> Any:
        """Cholesky's of the landmarks' kernel matrix with the ridge."""
        values = self._values(self._landmarks).astype(np.float64)
        return cho_factor(values + _RIDGE * np.eye(len(values)))

    def _values(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float32]:
        """Kernel values of rows with the landmarks, shape (n, n_landmarks)."""
        some, landmarks = self._dense[rows], self._dense[self._landmarks]
        products = some @ landmarks.T
        self._kernel.turn(products, _squares(some), _squares(landmarks))
        return products

    def _spread(self) -> NDArray[np.float64]:
        """Log-odds of the class of each two-class problem without each fold and last with all labels, shape (n_folds + 1, n_rows, n_problems).

        ``F ← α S F + (1 − α) Y`` with S the normalised edges; the labels of each class weigh the same in total.
        """
        study, n_classes = self._study, self._study.n_classes
        seeds = np.zeros((len(self._dense), N_FOLDS + 1, n_classes))
        for fold in range(N_FOLDS + 1):
            told = np.flatnonzero(study.folds != fold)
            codes = study.codes[told]
            seeds[told, fold, codes] = 1 / np.bincount(codes, minlength=n_classes)[codes]
        start = seeds.reshape(len(seeds), -1)
        beliefs = start
        for _ in range(_ROUNDS):
            beliefs = _PULL * (self._edges @ beliefs) + (1 - _PULL) * start
            self._between()
        folds = beliefs.reshape(len(beliefs), N_FOLDS + 1, n_classes).transpose(1, 0, 2) + _UNREACHED
        own = folds[:, :, study.positives]
        return np.asarray(np.log(own) - np.log(np.maximum(folds.sum(axis=2, keepdims=True) - own, _UNREACHED)))

    def _path(self, column: int, fold: int, grid: Vector) -> Path:
        log_odds, path = self._scores[fold][:, column], Path(grid)
        scores = np.array([self._at(log_odds, float(fraction)) for fraction in grid])
        path.labeled = scores[:, : len(self._study.codes)]
        path.objectives = np.array([self._cut(each > 0) for each in scores])
        self._between()
        return path

    def _at(self, log_odds: Vector, fraction: float) -> Vector:
        """Scores, of mean size 1 around the median, with that fraction of the unlabeled rows above 0."""
        unlabeled = log_odds[len(self._study.codes) :]
        above = log_odds - np.quantile(unlabeled, 1 - fraction)
        return np.asarray(above / max(float(np.abs(unlabeled - np.median(unlabeled)).mean()), _UNREACHED))

    def _cut(self, sides: NDArray[np.bool_]) -> float:
        """The share of the edges whose ends are on different sides: 2 r (1 − r) for sides that have nothing to do with the neighbours."""
        owners = np.repeat(sides, np.diff(self._edges.indptr))
        return (float(np.count_nonzero(owners != sides[self._edges.indices])) + 1) / (self._edges.nnz + 1)


def _dense(rows: SparseRows) -> NDArray[np.float32]:
    """Off their centre, so that distances do not drown in the rows' own length."""
    dense = np.zeros((rows.n_rows, rows.n_features), np.float32)
    first, last = rows.indptr[0], rows.indptr[-1]
    dense[np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), rows.indices[first:last]] = rows.values[first:last]
    dense -= dense.mean(axis=0, dtype=np.float64).astype(np.float32)
    return dense


def _landmarks(n_rows: int, n_labeled: int) -> NDArray[np.int64]:
    """As many rows as a model may keep, ascending: evenly spaced labeled ones, at most half, and unlabeled ones; all if they are no more."""
    if n_rows <= LANDMARKS:
        return np.arange(n_rows)
    labeled = max(min(n_labeled, LANDMARKS // 2), LANDMARKS - (n_rows - n_labeled))
    ranges = (0, n_labeled - 1, labeled), (n_labeled, n_rows - 1, LANDMARKS - labeled)
    return np.concatenate([np.linspace(first, last, count).astype(np.int64) for first, last, count in ranges])


def _squares(dense: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.einsum("ij,ij->i", dense, dense), np.float32)


def _neighbours(dense: NDArray[np.float32], between: Callable[[], None]) -> csr_array:
    """Edges of each row to its nearest ones, both ways, by ``1 / √(degree · degree)``."""
    n_rows, squares = len(dense), _squares(dense)
    nearest, height = np.empty((n_rows, NEIGHBOURS), np.int64), max(1, _BLOCK // n_rows)
    for start in range(0, n_rows, height):
        distances = squares - 2 * (dense[start : start + height] @ dense.T)
        distances[np.arange(len(distances)), np.arange(start, start + len(distances))] = np.inf
        nearest[start : start + height] = np.argpartition(distances, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        between()
    owners = np.repeat(np.arange(n_rows), NEIGHBOURS)
    one_way = csr_array((np.ones(nearest.size), (owners, nearest.ravel())), shape=(n_rows, n_rows))
    edges = csr_array(one_way.maximum(one_way.T))
    roots = np.sqrt(np.diff(edges.indptr))
    edges.data /= np.repeat(roots, np.diff(edges.indptr)) * roots[edges.indices]
    return edges
