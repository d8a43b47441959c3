"""Which of two ways to learn held-out labels speak for."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Comparison(NamedTuple):
    """Two models on labels that neither was told."""

    first: float
    """log-likelihood of the labels by the first model, in nats"""
    second: float
    only_first: int
    """labels that only the first gets right: easier to tell a person, but with few labels the counts are too coarse to decide by"""
    only_second: int

    @property
    def against_second(self) -> bool:
        """Whether the labels are less likely by the second."""
        return self.second < self.first


def compared(likelihoods: tuple[float, float], first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Comparison:
    """From the likelihoods, and from whether each of the two got each label right."""
    return Comparison(*likelihoods, int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first)))


def right(scores: NDArray[np.float64], codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Whether scores of shape (n, n_columns) give each row its class."""
    if scores.shape[1] == 1:
        return np.asarray((scores[:, 0] > 0) == (codes == 1))
    return np.asarray(np.argmax(scores, axis=1) == codes)
