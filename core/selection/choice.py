"""Which of two ways to learn held-out labels speak for."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Comparison(NamedTuple):
    """Held-out labels that only one of two models gets right."""

    only_first: int
    only_second: int

    @property
    def against_second(self) -> bool:
        """Whether the second does worse by more than chance lets it: by more than one standard error of the difference (McNemar's test)."""
        return self.only_first - self.only_second > math.sqrt(self.only_first + self.only_second)


def compared(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Comparison:
    """From whether each of the two got each held-out label right."""
    return Comparison(int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first)))


def right(scores: NDArray[np.float64], codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Whether scores of shape (n, n_columns) give each row its class."""
    if scores.shape[1] == 1:
        return np.asarray((scores[:, 0] > 0) == (codes == 1))
    return np.asarray(np.argmax(scores, axis=1) == codes)
