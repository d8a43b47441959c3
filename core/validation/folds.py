"""Folds of cross-validation: stratified, shuffled by a seed."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.problem.problem import Problem

N_FOLDS = 3


def folds_of(class_indices: NDArray[np.integer[Any]], seed: int, count: int = N_FOLDS) -> NDArray[np.int64]:
    """For each labeled row the fold that it is left out in, shape (n_labeled,); -1 for the only label of a class, which cannot be left out.

    ``class_indices`` are the classes of the labeled rows. Every class is spread over the folds as evenly as possible, and the folds are of
    about one size.
    """
    rng = np.random.default_rng(seed)
    folds, following = np.full(len(class_indices), -1, np.int64), 0
    for class_index in np.unique(class_indices):
        rows = np.flatnonzero(class_indices == class_index)
        if len(rows) > 1:
            folds[rng.permutation(rows)] = (np.arange(len(rows)) + following) % count
            following += len(rows)
    return folds


def without(problem: Problem, rows: NDArray[np.bool_]) -> Problem:
    """The problem without some of its labeled rows, a mask of shape (n_labeled,): they cost nothing. Takes a number a row of memory."""
    costs = problem.costs.copy()
    costs[: problem.n_labeled][rows] = 0.0
    costs.flags.writeable = False
    return replace(problem, costs=costs)
