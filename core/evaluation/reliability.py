"""Reliability of probabilities: calibration error, Brier score, log loss; and labels to doubt by them.

Of the documents given a class with 80 %, 80 % should be of it. Source of the doubts: Northcutt, Jiang & Chuang,
Confident learning: estimating uncertainty in dataset labels, 2021 (predictions out of sample; here ranked by the margin
between the label and the likeliest other one).
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

BINS = 15
_LEAST = float(np.finfo(np.float64).eps)
"""least probability in the log loss, which would be infinite for 0"""


class Bin(NamedTuple):
    """The documents with a probability of the likeliest class from ``start`` to ``end``; without any, means are NaN."""

    start: float
    end: float
    documents: int
    confidence: float
    """mean probability of the likeliest class"""
    accuracy: float
    """share of the documents that are of it"""


class Reliability:
    """Probabilities compared with labels, batch by batch."""

    def __init__(self) -> None:
        self._counts = np.zeros(BINS, np.int64)
        self._confidence, self._hits = np.zeros(BINS), np.zeros(BINS)
        self._squares = self._logs = 0.0

    @classmethod
    def of(cls, probabilities: NDArray[np.float64], truth: NDArray[np.integer[Any]]) -> Self:
        """The comparison of one batch; see ``add``."""
        reliability = cls()
        reliability.add(probabilities, truth)
        return reliability

    def add(self, probabilities: NDArray[np.float64], truth: NDArray[np.integer[Any]]) -> None:
        """Compare ``probabilities`` of shape (n_documents, n_classes) with the labels ``truth``, shape (n_documents,).

        A label beyond the classes has a probability of 0.
        """
        n_classes = probabilities.shape[1]
        likeliest, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
        bins = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
        self._counts += np.bincount(bins, minlength=BINS)
        self._confidence += np.bincount(bins, confidence, BINS)
        self._hits += np.bincount(bins, likeliest == truth, BINS)
        own = np.where(truth < n_classes, probabilities[np.arange(len(truth)), np.minimum(truth, n_classes - 1)], 0.0)
        squares = np.einsum("ij,ij->i", probabilities, probabilities) - 2 * own + 1
        self._squares += float(squares.sum()) / (2 if n_classes == 2 else 1)
        self._logs -= float(np.log(np.maximum(own, _LEAST)).sum())

    @property
    def expected_error(self) -> float:
        """Expected calibration error of the likeliest class, over bins of equal width (Guo et al., 2017)."""
        return float(np.abs(self._hits - self._confidence).sum() / self._counts.sum())

    @property
    def brier(self) -> float:
        """Brier score: the mean squared distance of the probabilities from 1 for the label and 0 for the others.

        Of two classes it is that of one of them, from 0 to 1; of more classes the sum over all, from 0 to 2."""
        return self._squares / int(self._counts.sum())

    @property
    def log_loss(self) -> float:
        """Log loss: the mean of −ln of the label's probability, bounded from below by the machine epsilon."""
        return self._logs / int(self._counts.sum())

    @property
    def bins(self) -> list[Bin]:
        """All BINS bins, from 0 to 1."""
        counts = np.where(self._counts > 0, self._counts, np.nan)
        means = zip(
            self._counts.tolist(), (self._confidence / counts).tolist(), (self._hits / counts).tolist(), strict=True
        )
        return [Bin(place / BINS, (place + 1) / BINS, *found) for place, found in enumerate(means)]


def doubtful(probabilities: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """The rows with a likelier class than the label, shape (n_doubtful,), the largest margin first, of equals the first
    row.

    ``probabilities`` have shape (n, n_classes), ``labels`` are class indices, shape (n,).
    """
    margins = probabilities[np.arange(len(labels)), labels] - probabilities.max(axis=1, initial=0.0)
    rows = np.flatnonzero(margins < 0)
    return rows[np.argsort(margins[rows], kind="stable")]
