"""Sigmoids of several labels, and the probability from which each label is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import Matrix, Vector, expit


@dataclass(frozen=True)
class LabelCalibration:
    """``p = 1 / (1 + exp(−(slopes · score + offsets)))`` a label, each given from its threshold on."""

    slopes: Vector
    """shape (n_labels,), above 0"""
    offsets: Vector
    """shape (n_labels,)"""
    thresholds: Vector
    """shape (n_labels,): probability from which the label is given"""

    def probabilities(self, scores: Matrix) -> Matrix:
        """shape (n_rows, n_labels): probability that the label applies, whatever others do."""
        return expit(self.slopes * scores + self.offsets)

    def given(self, probabilities: Matrix) -> NDArray[np.bool_]:
        """shape (n_rows, n_labels): whether the label is given."""
        return np.asarray(probabilities >= self.thresholds)

    def to_json(self) -> dict[str, list[float]]:
        """As it is stored with its model."""
        return {name: getattr(self, name).tolist() for name in ("slopes", "offsets", "thresholds")}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json``."""
        return cls(*(np.asarray(stored[name], np.float64) for name in ("slopes", "offsets", "thresholds")))
