"""Trainings on documents that may have several labels."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.documents.label_sets import LabelSets
from core.documents.rows import SparseRows
from core.documents.votes import checked_weights
from core.errors import InvalidOption, refused
from core.problem import Problem
from core.registry import check_options, find_algorithm
from core.task import CheckedTask, TrainingTask
from core.validation.folds import N_FOLDS, without


@dataclass(frozen=True)
class SeveralTask(CheckedTask):
    """A task of documents that may have several labels; those of which any is known are labeled."""

    known: NDArray[np.int8]
    """shape (n_labeled, n_labels): 1 where a label applies, -1 where it does not, 0 where that is not known"""
    class_names: SparseRows
    """a row a label: the terms of its name"""

    @classmethod
    def of(cls, task: TrainingTask, sets: LabelSets) -> Self:
        """The task with its options parsed; raises UnknownAlgorithm, InvalidOption and InvalidDocuments."""
        if task.votes is not None:
            raise refused(
                "a training cannot learn from votes beside several labels; send the documents with labels alone",
                "votes",
            )
        weights = checked_weights(task.weights, task.rows.n_rows)
        labeled = (sets.complete | (np.diff(sets.indptr) > 0)) & (weights > 0)
        own = sets.taken(np.flatnonzero(labeled))
        places = np.flatnonzero(own.counts)
        classes = [sets.classes[place] for place in places.tolist()]
        options = check_options(task.algorithm, task.options, classes, task.rows.n_rows, several=True)
        if task.start is not None:
            raise InvalidOption("start_from", "a training of several labels starts from no other model; leave it out")
        order = np.concatenate([np.flatnonzero(labeled), np.flatnonzero(~labeled)])
        known = own.among(classes).matrix()
        no_names = SparseRows.empty(len(sets.classes), task.rows.n_features)
        names = no_names if task.class_names is None else task.class_names
        return cls(
            task,
            find_algorithm(task.algorithm),
            options,
            classes,
            order,
            weights[labeled],
            known,
            names.taken(places),
        )

    def known_fractions(self) -> NDArray[np.float64] | None:
        """The shares of the documents whose labels are all known, shape (n_labels,), where the options ask for them;
        else None.
        """
        requested = self.options.requested_fractions(self.classes)
        if requested is None or requested.source != "labeled":
            return None
        complete = self.known[(self.known != 0).all(axis=1)]
        return np.asarray((complete > 0).sum(axis=0) / max(1, len(complete)))

    @cached_property
    def folds(self) -> NDArray[np.int64]:
        """shape (n_labeled,): the fold that each labeled document is left out in.

        The documents of the rarest label are spread over the folds first, then those of the next that have no fold.
        """
        rng, following = np.random.default_rng(self.task.seed), 0
        folds, counts = np.full(self.n_labeled, -1, np.int64), (self.known > 0).sum(axis=0)
        for column in [*np.argsort(counts, kind="stable").tolist(), None]:
            own = folds < 0 if column is None else (folds < 0) & (self.known[:, column] > 0)
            rows = rng.permutation(np.flatnonzero(own))
            folds[rows] = (np.arange(len(rows)) + following) % N_FOLDS
            following += len(rows)
        return folds

    def whole_problem(self, rows: SparseRows) -> Problem:
        """The problem that all labels share, over these rows: its labels have no meaning."""
        costs = np.concatenate([self.weights / self.weights.mean(), np.ones(len(self.unlabeled))])
        return Problem.of(rows, np.ones(self.n_labeled), costs, self.task.seed)

    def problem(self, whole: Problem, column: int, fold: int | None = None) -> Problem | None:
        """The two-class problem of a label, without the documents of a ``fold``; None if no document is left that it
        applies to.

        ``whole`` is that of ``whole_problem``. Documents of which this label is not known cost nothing.
        """
        known = self.known[:, column]
        hidden = known == 0 if fold is None else (known == 0) | (self.folds == fold)
        if not (known[~hidden] > 0).any():
            return None
        problem = replace(whole, y=np.where(known > 0, 1.0, -1.0))
        return without(problem, hidden) if hidden.any() else problem
