"""Folds of cross-validation: stratified, shuffled by a seed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.problem.problem import Problem

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
