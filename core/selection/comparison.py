"""Compares methods by labels left out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.one_vs_rest import labels_of


def likeliest(likelihoods: Sequence[float]) -> int:
    """The position of the largest of the log-likelihoods of labels left out, in nats: of the supervised SVM, the transductive SVM, and others.

    Of equals, as where no label can be left out, the transductive SVM is preferred, then the supervised one. NaN, of scores that overflow, is last.
    """
    return max(range(len(likelihoods)), key=lambda place: (np.nan_to_num(likelihoods[place], nan=-np.inf), place == 1, -place))


def hits(scores: NDArray[np.float64], class_indices: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Whether scores of shape (n, n_columns) give each row its own class, shape (n,)."""
    return np.asarray(labels_of(scores) == class_indices)
