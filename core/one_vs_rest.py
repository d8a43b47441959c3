"""The two-class problems of some classes, and the labels by their scores: two classes make one problem, for the second;
more make one a class, against the rest.

A column of scores is that of a problem, positive for its class. Loads with NumPy alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.progress import Phase


def n_problems(n_classes: int) -> int:
    """How many two-class problems, and columns of scores, there are."""
    return 1 if n_classes == 2 else n_classes


def n_classes_of(n_problems: int) -> int:
    """How many classes make so many problems."""
    return max(2, n_problems)


def positives_of(n_classes: int) -> list[int]:
    """The class that is positive in each problem."""
    return [1] if n_classes == 2 else list(range(n_classes))


def phases_of(classes: Sequence[str | int]) -> list[Phase]:
    """The phase of each problem."""
    return [Phase()] if len(classes) == 2 else [Phase(label=label) for label in classes]


def column_of(class_index: int, n_problems: int) -> int:
    """The column of scores that tells of a class: of two classes it tells of both."""
    return class_index if n_problems > 1 else 0


def labels_of(scores: NDArray[np.floating]) -> NDArray[np.intp]:
    """The class that each row is given, shape (n_rows,), by scores of shape (n_rows, n_problems): the second of two
    where its score is above 0, of more the one with the largest, of equals the first."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return np.asarray(np.argmax(scores, axis=1), np.intp)


def own_scores(scores: NDArray[np.float64], class_indices: NDArray[np.intp]) -> NDArray[np.float64]:
    """The score in the column of each row's class, shape (n_rows,)."""
    return scores[:, 0] if scores.shape[1] == 1 else scores[np.arange(len(class_indices)), class_indices]
