"""Whether probabilities are what they say: of the documents said to be right with 80 %, are 80 % right?"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

BINS = 15
_LEAST = float(np.finfo(np.float64).eps)
"""what no probability counts as less than in the log loss, which would be infinite"""


class Bin(NamedTuple):
    """The documents whose likeliest class has a probability from ``start`` to ``end``; the means are NaN where there are none."""

    start: float
    end: float
    documents: int
    confidence: float
    """mean probability of the likeliest class"""
    accuracy: float
    """share of the documents that are of it"""


class Reliability:
    """Probabilities compared with labels, batch after batch."""

    def __init__(self) -> None:
        self._counts = np.zeros(BINS, np.int64)
        self._sure, self._hits = np.zeros(BINS), np.zeros(BINS)
        self._squares = self._logs = 0.0

    @classmethod
    def of(cls, probabilities: NDArray[np.float64], truth: NDArray[np.integer[Any]]) -> Self:
        """Of documents at once; see ``add``."""
        made = cls()
        made.add(probabilities, truth)
        return made

    def add(self, probabilities: NDArray[np.float64], truth: NDArray[np.integer[Any]]) -> None:
        """Compare ``probabilities`` of shape (n_documents, n_classes) with the labels ``truth``, shape (n_documents,).

        A label beyond the classes has a probability of 0.
        """
        n_classes = probabilities.shape[1]
        likeliest, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
        bins = np.minimum((sure * BINS).astype(np.intp), BINS - 1)
        self._counts += np.bincount(bins, minlength=BINS)
        self._sure += np.bincount(bins, sure, BINS)
        self._hits += np.bincount(bins, likeliest == truth, BINS)
        own = np.where(truth < n_classes, probabilities[np.arange(len(truth)), np.minimum(truth, n_classes - 1)], 0.0)
        squares = np.einsum("ij,ij->i", probabilities, probabilities) - 2 * own + 1
        self._squares += float(squares.sum()) / (2 if n_classes == 2 else 1)
        self._logs -= float(np.log(np.maximum(own, _LEAST)).sum())

    @property
    def expected_error(self) -> float:
        """Expected calibration error of the likeliest class, over bins of equal width (Guo et al., 2017)."""
        return float(np.abs(self._hits - self._sure).sum() / self._counts.sum())

    @property
    def brier(self) -> float:
        """Mean squared distance of the probabilities from 1 for the label and 0 for the others: of two classes of one of them, so from 0 to 1;
        of more summed over all, so from 0 to 2."""
        return self._squares / int(self._counts.sum())

    @property
    def log_loss(self) -> float:
        """Mean of −ln of the label's probability, which counts as the smallest difference of floating-point numbers from 1 where it is less."""
        return self._logs / int(self._counts.sum())

    @property
    def bins(self) -> list[Bin]:
        """All BINS of them, from 0 to 1."""
        counts = np.where(self._counts > 0, self._counts, np.nan)
        means = zip(self._counts.tolist(), (self._sure / counts).tolist(), (self._hits / counts).tolist(), strict=True)
        return [Bin(place / BINS, (place + 1) / BINS, *found) for place, found in enumerate(means)]
