"""How good an answer is: error, fractions, probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BINS = 15


def error(answer: NDArray[np.integer[Any]], truth: NDArray[np.integer[Any]]) -> float:
    return float(np.mean(answer != truth))


def shares(codes: NDArray[np.integer[Any]], n_classes: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(codes, minlength=n_classes) / len(codes))


def total_variation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Half the summed difference of two distributions: the share that would have to move."""
    return float(np.abs(one - other).sum() / 2)


def calibration_error(probabilities: NDArray[np.float64], truth: NDArray[np.integer[Any]]) -> float:
    """Expected calibration error of the likeliest class, over 15 bins of equal width (Guo et al. 2017)."""
    sure = probabilities.max(axis=1)
    hit = probabilities.argmax(axis=1) == truth
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(bins, hit - sure, _BINS)
    return float(np.abs(gaps).sum() / len(truth))
