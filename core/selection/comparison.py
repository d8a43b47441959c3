"""Which way to learn held-out labels speak for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.one_vs_rest import labels_of


def likeliest(likelihoods: Sequence[float]) -> int:
    """The position of the largest log-likelihood of labels that no model was told, in nats: the supervised model's first, the transductive one's,
    and perhaps more. Of equals, as where no label could be left out, the transductive one is preferred, then the supervised one; one of
    scores that overflowed is not."""
    return max(range(len(likelihoods)), key=lambda place: (np.nan_to_num(likelihoods[place], nan=-np.inf), place == 1, -place))


def hits(scores: NDArray[np.float64], class_indices: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Whether scores of shape (n, n_columns) give each row its class."""
    return np.asarray(labels_of(scores) == class_indices)
