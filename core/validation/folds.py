"""Cross-validation of any algorithm: folds, stratified and shuffled by a seed, and scores of labeled documents by
models that were trained without their labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import gathered
from core.documents.rows import MEMORY, Space, SparseRows
from core.problem import Problem, Result, ensure_complete
from core.progress import Checkpoint

N_FOLDS = 3


def folds_of(class_indices: NDArray[np.integer[Any]], seed: int, count: int = N_FOLDS) -> NDArray[np.int64]:
    """For each labeled row the fold that it is left out in, shape (n_labeled,); -1 for the only label of a class, which
    cannot be left out.

    ``class_indices`` are the classes of the labeled rows. Every class is spread over the folds as evenly as possible,
    and the folds are of about one size.
    """
    rng = np.random.default_rng(seed)
    folds, following = np.full(len(class_indices), -1, np.int64), 0
    for class_index in np.unique(class_indices):
        rows = np.flatnonzero(class_indices == class_index)
        if len(rows) > 1:
            folds[rng.permutation(rows)] = (np.arange(len(rows)) + following) % count
            following += len(rows)
    return folds


def evenly_spaced(classes: NDArray[Any], count_of: Callable[[int], int]) -> NDArray[np.int64]:
    """Positions of some rows of each class, ascending and evenly spaced within it.

    ``classes`` has one of each row; of a class of n rows at most ``count_of(n)`` are taken.
    """
    chosen = []
    for label in np.unique(classes):
        rows = np.flatnonzero(classes == label)
        count = min(len(rows), count_of(len(rows)))
        chosen.append(rows[np.linspace(0, len(rows) - 1, count).round().astype(np.int64)])
    return np.unique(np.concatenate(chosen))


def without(problem: Problem, rows: NDArray[np.bool_]) -> Problem:
    """The problem without some of its labeled rows, a mask of shape (n_labeled,): they cost nothing.

    Takes a number a row of memory.
    """
    costs = problem.costs.copy()
    costs[: problem.n_labeled][rows] = 0.0
    costs.flags.writeable = False
    return replace(problem, costs=costs)


Solve = Callable[[int, SparseRows, NDArray[np.int64]], Sequence[Result]]
"""Solver without a fold: takes its number, all rows with the labeled ones that are left first, and the positions of
these among all labeled ones; a result a two-class problem."""


def cross_val_scores(
    rows: SparseRows,
    class_indices: NDArray[np.integer[Any]],
    n_columns: int,
    seed: int,
    solve: Solve,
    checkpoint: Checkpoint = lambda: None,
    space: Space = MEMORY,
) -> NDArray[np.float64]:
    """Scores of the labeled rows, shape (n_labeled, n_columns), each by models that had it among the unlabeled rows;
    raises Stopped.

    ``class_indices`` are the classes of the labeled rows, which come first. Scores are NaN for a row that no fold
    leaves out. Every solver takes labeled rows first, so the rows are reordered for each fold, one copy at a time,
    which lies in ``space``. ``checkpoint`` is called between slices of such a copy.
    """
    folds, scores = folds_of(class_indices, seed), np.full((len(class_indices), n_columns), np.nan)
    for fold in range(N_FOLDS):
        hidden = np.flatnonzero(folds == fold)
        if not len(hidden):
            continue
        kept = np.flatnonzero(folds != fold)
        order = np.concatenate([kept, hidden, np.arange(len(class_indices), rows.n_rows)])
        results = solve(fold, gathered(rows, order, checkpoint, space), kept)
        ensure_complete(results)
        scores[hidden] = np.column_stack([result.unlabeled_scores[: len(hidden)] for result in results])
    return scores
