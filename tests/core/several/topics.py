"""Documents of several labels whose truth is known: each label has words of its own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.label_sets import LabelSets
from core.documents.rows import SparseRows, unit_rows
from core.task import TrainingTask
from tests.core.problems import rows_of

LABELS = ["barley", "corn", "ship"]
WORDS, COMMON, LENGTH = 6, 30, 8
"""words of a label, words of all, and words of a document by chance"""


class Topics:
    """Texts with labels that go together: corn is in half of what has barley; some documents have no label."""

    def __init__(self, n: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.truth = rng.random((n, 3)) < [0.3, 0.2, 0.1]
        self.truth[:, 1] |= self.truth[:, 0] & (rng.random(n) < 0.5)
        dense = np.zeros((n, 3 * WORDS + COMMON), np.float32)
        for row in range(n):
            np.add.at(dense[row], 3 * WORDS + rng.integers(COMMON, size=LENGTH), 1)
            np.add.at(dense[row], rng.integers(3 * WORDS, size=1), 1)  # a word of a label by chance
            for label in np.flatnonzero(self.truth[row]):
                np.add.at(dense[row], label * WORDS + rng.integers(WORDS, size=3), 1)
        self.rows = sparse(dense)

    def sets(self, n_labeled: int) -> LabelSets:
        """The labels of the first documents; the others are unlabeled."""
        applied: list[Any] = [np.flatnonzero(row).tolist() for row in self.truth[:n_labeled]]
        n_others = len(self.truth) - n_labeled
        return LabelSets.of([*applied, *[None] * n_others], [None] * len(self.truth), LABELS)

    def task(self, n_labeled: int, algorithm: str = "auto", **more: Any) -> TrainingTask:
        nothing: NDArray[np.int64] = np.full(len(self.truth), -1)
        given: dict[str, Any] = {"options": {}, "label_sets": self.sets(n_labeled)} | more
        return TrainingTask(self.rows, nothing, LABELS, algorithm, **given)


def sparse(dense: NDArray[np.float32]) -> SparseRows:
    return unit_rows(rows_of(dense))
