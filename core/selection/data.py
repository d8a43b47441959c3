"""The data of a model selection: scaled rows, two-class problems, and folds of the labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.one_vs_rest import n_classes_of, positives_of, prefixes_of
from core.options.base import Drawn
from core.problem.problem import Problem
from core.progress import Checkpoint
from core.selection.feature_scaling import ScaledRows, scale_features
from core.selection.log_evidence import is_balanced
from core.validation.folds import folds_of


@dataclass(frozen=True)
class SelectionData:
    """Rows of which the first are labeled, and their two-class problems: of two classes one, for the second; of more one a class."""

    scaled: ScaledRows
    class_indices: NDArray[np.integer[Any]]
    """shape (n_labeled,): classes of the labeled rows, from 0"""
    folds: NDArray[np.int64]
    """shape (n_labeled,): see core.validation.folds"""
    problems: list[Problem]
    """over the scaled rows"""
    prefixes: list[str]
    """beginnings of the phases of each problem"""
    drawn: Drawn = "unknown"
    """how the labeled rows were drawn"""
    weighted: bool = False
    """whether the labels of all classes cost the same in total, however many there are of each"""

    @classmethod
    def of(
        cls,
        rows: SparseRows,
        class_indices: NDArray[np.integer[Any]],
        classes: Sequence[str | int],
        seed: int,
        checkpoint: Checkpoint = lambda: None,
        drawn: Drawn = "unknown",
    ) -> Self:
        """The data of these rows; ``seed`` decides the folds. ``checkpoint`` is called between slices of the work; what it raises ends the work."""
        scaled = scale_features(rows, checkpoint)
        positives = positives_of(len(classes))
        whole = Problem.of(scaled.rows, np.ones(len(class_indices)), seed=seed)
        # all share the array of costs, a number a row
        problems = [replace(whole, y=np.where(class_indices == positive, 1.0, -1.0)) for positive in positives]
        return cls(scaled, class_indices, folds_of(class_indices, seed), problems, prefixes_of(classes), drawn)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return n_classes_of(len(self.problems))

    @property
    def positives(self) -> list[int]:
        """The class of each problem."""
        return positives_of(self.n_classes)

    @property
    def balanced(self) -> bool:
        """Whether the classes have (nearly) equal numbers of labels, or equal costs of them."""
        return self.weighted or is_balanced(np.bincount(self.class_indices, minlength=self.n_classes))

    @property
    def informative(self) -> bool:
        """Whether the class counts of the labels are evidence of the class fractions."""
        return self.drawn == "random" or (self.drawn == "unknown" and not self.balanced)

    def weighted_by_class(self) -> Self:
        """The same data, with labels that cost the same for each class in total, and whose numbers are no evidence.

        Solutions then depend on what the labels of a class are like, and not on how many of each class somebody has labeled: that would move an
        intercept towards the class of more labels, which need not have more documents.
        """
        counts = np.maximum(np.bincount(self.class_indices, minlength=self.n_classes), 1)
        costs = self.problems[0].costs.copy()
        costs[: len(self.class_indices)] = len(self.class_indices) / (self.n_classes * counts[self.class_indices])
        costs.flags.writeable = False
        problems = [replace(problem, costs=costs) for problem in self.problems]
        return replace(self, problems=problems, drawn="chosen", weighted=True)

    @property
    def n_folds(self) -> int:
        """Number of folds that leave a label out: with one label a class there is none, and nothing to be solved without it."""
        return int(self.folds.max(initial=-1)) + 1

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """shape (n_labeled,): whether some fold leaves the row out."""
        return np.asarray(self.folds >= 0)
