"""Measures of an answer: error, agreement beyond chance, class fractions."""

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


def kappa(answer: NDArray[np.integer[Any]], truth: NDArray[np.integer[Any]], n_classes: int) -> float:
    """Cohen's kappa: (accuracy − chance) / (1 − chance); 0 of one class for all, 1 if all is right."""
    by_chance = float(class_fractions(answer, n_classes) @ class_fractions(truth, n_classes))
    return (1 - error(answer, truth) - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0
