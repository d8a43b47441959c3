"""The data of a model selection: scaled rows, two-class problems, and folds of the labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw, checked_drawn
from core.documents.rows import SparseRows
from core.documents.space import MEMORY, Space
from core.one_vs_rest import n_classes_of, phases_of, positives_of
from core.problem.problem import Problem
from core.progress import Checkpoint, Phase
from core.selection.feature_scaling import ScaledRows, scale_features
from core.selection.log_evidence import LabelCounts, is_balanced, is_planned
from core.selection.registry import is_dense
from core.validation.folds import folds_of

FEWEST = 3
"""labels of each class from which on a model can be had of as many of each"""


@dataclass(frozen=True)
class SelectionData:
    """Rows, the labeled ones first, and their two-class problems: of two classes one, for the second; of more one a
    class.
    """

    scaled: ScaledRows
    class_indices: NDArray[np.integer[Any]]
    """shape (n_labeled,): classes of the labeled rows, from 0"""
    folds: NDArray[np.int64]
    """shape (n_labeled,): see core.validation.folds"""
    problems: list[Problem]
    """over the scaled rows"""
    phases: list[Phase]
    """what solvers of each problem are run for"""
    drawn: NDArray[np.int8]
    """shape (n_labeled,): how each label was come by, values of core.documents.drawn.Draw"""
    dense: bool
    """whether the rows are numbers, between which distances are meaningful; of a part of the rows or features, whether
    the whole are"""
    space: Space = MEMORY
    """where copies of the rows lie"""
    bounds: NDArray[np.float64] | None = None
    """shape (n_classes, 2): the least and the largest fraction of each class, where something is known"""
    columns: NDArray[np.int64] | None = None
    """of its features among those of the data that it is a part of, ascending; None if it has all of them"""

    @classmethod
    def of(
        cls,
        rows: SparseRows,
        class_indices: NDArray[np.integer[Any]],
        classes: Sequence[str | int],
        seed: int,
        checkpoint: Checkpoint = lambda: None,
        drawn: NDArray[np.int8] | None = None,
        space: Space = MEMORY,
        *,
        centred: bool = True,
        bounds: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> Self:
        """The data of these rows; ``seed`` decides the folds. ``checkpoint`` is called between slices of the work,
        which ends when it raises. ``centred`` as in scale_features. ``weights``, shape
        (n_labeled,), are those of the labels, by default 1.
        """
        scaled = scale_features(rows, checkpoint, space, centred=centred)
        positives = positives_of(len(classes))
        costs = np.ones(rows.n_rows)
        if weights is not None:
            costs[: len(weights)] = weights
        whole = Problem.of(scaled.rows, np.ones(len(class_indices)), costs, seed)
        # all share the array of costs, a number a row
        problems = [replace(whole, y=np.where(class_indices == positive, 1.0, -1.0)) for positive in positives]
        folds, drawn = folds_of(class_indices, seed), checked_drawn(drawn, len(class_indices))
        dense = is_dense(rows.n_rows, rows.n_features, rows.n_nonzeros)
        return cls(scaled, class_indices, folds, problems, phases_of(classes), drawn, dense, space, bounds)

    def over_all_features(self, coefficients: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Coefficients of its features, shape (its number of them + 1,), the bias last, as coefficients of all
        ``n_features``: 0 for the others.
        """
        if self.columns is None:
            return coefficients
        found = np.zeros(n_features + 1)
        found[self.columns], found[-1] = coefficients[:-1], coefficients[-1]
        return found

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return n_classes_of(len(self.problems))

    @property
    def positives(self) -> list[int]:
        """The class of each problem."""
        return positives_of(self.n_classes)

    @property
    def weights(self) -> NDArray[np.float64]:
        """shape (n_labeled,): weight of each label."""
        return self.problems[0].costs[: len(self.class_indices)]

    @property
    def counts_by_origin(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of labels of each class, shape (n_classes,): of a random sample, and of unknown origin; none of the
        latter if they are a plan.
        """
        random, unknown = (
            np.bincount(self.class_indices[self.drawn == draw], minlength=self.n_classes)
            for draw in (Draw.RANDOM, Draw.UNKNOWN)
        )
        return random, unknown * (not self.planned)

    @property
    def counts(self) -> LabelCounts:
        """The same of the second of two classes."""
        random, unknown = self.counts_by_origin
        return LabelCounts(int(random[1]), int(random.sum()), int(unknown[1]), int(unknown.sum()))

    @property
    def planned(self) -> bool:
        """Whether the numbers of labels of unknown origin were somebody's plan."""
        return is_planned(np.bincount(self.class_indices[self.drawn == Draw.UNKNOWN], minlength=self.n_classes))

    @property
    def balanced(self) -> bool:
        """Whether the classes have (nearly) equal numbers of labels."""
        return is_balanced(np.bincount(self.class_indices, minlength=self.n_classes))

    @property
    def surplus(self) -> NDArray[np.bool_]:
        """shape (n_labeled,): labels beyond those that the class with the fewest has, where these are not too few."""
        surplus = np.zeros(len(self.class_indices), bool)
        least = int(np.bincount(self.class_indices, minlength=self.n_classes).min())
        for each in range(self.n_classes if least >= FEWEST else 0):
            surplus[np.flatnonzero(self.class_indices == each)[least:]] = True
        return surplus

    @property
    def n_folds(self) -> int:
        """Number of folds that leave a label out: with one label a class there is none, and nothing to be solved
        without it.
        """
        return int(self.folds.max(initial=-1)) + 1

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """shape (n_labeled,): whether some fold leaves the row out."""
        return np.asarray(self.folds >= 0)
