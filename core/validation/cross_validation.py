"""Cross-validation of any algorithm: scores of labeled documents by models trained without their labels."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import gathered
from core.documents.rows import SparseRows
from core.documents.space import MEMORY, Space
from core.problem.result import Result, ensure_complete
from core.progress import Checkpoint
from core.validation.folds import N_FOLDS, folds_of

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
