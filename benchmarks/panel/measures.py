"""Measures of an answer: error, and class fractions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def error(answer: NDArray[np.integer[Any]], truth: NDArray[np.integer[Any]]) -> float:
    return float(np.mean(answer != truth))


def class_fractions(class_indices: NDArray[np.integer[Any]], n_classes: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(class_indices, minlength=n_classes) / len(class_indices))


def total_variation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Half the summed difference of two distributions: the mass that would have to move."""
    return float(np.abs(one - other).sum() / 2)
