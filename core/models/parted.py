"""A linear model of documents of several parts, with another one for documents that lack some of these."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.models.model import Arrays, Contributions, LinearModel
from core.validation.calibration import Calibration

_PREFIX = "incomplete_"


@dataclass(frozen=True)
class PartedModel(LinearModel):
    """Two linear models with one calibration: itself of the documents that have all parts, and ``incomplete`` of the
    others.
    """

    required: NDArray[np.int64]
    """shape (n, 2): the first column of each part that a document may lack, and that after the last"""
    incomplete: LinearModel
    """of the other parts"""

    @classmethod
    def of(cls, whole: LinearModel, incomplete: LinearModel, required: NDArray[np.int64]) -> Self:
        """The model of both, with the calibration of ``whole``: scores of the other one are brought to those that have
        its probabilities there.
        """
        own, other = whole.calibration, incomplete.calibration
        assert isinstance(own, Calibration)
        assert isinstance(other, Calibration)
        scales = other.slopes / own.slopes
        shifts = (other.offsets + other.log_odds - own.offsets - own.log_odds) / own.slopes
        coefficients, intercepts = incomplete.coefficients * scales, incomplete.intercepts * scales + shifts
        return cls(
            whole.classes,
            whole.n_features,
            whole.features,
            whole.coefficients,
            whole.intercepts,
            required,
            replace(incomplete, coefficients=coefficients, intercepts=intercepts, calibration=None),
            calibration=own,
        )

    @property
    def weight_bytes(self) -> int:
        """See Model."""
        return super().weight_bytes + self.incomplete.weight_bytes

    def scores_and_unseen(self, rows: SparseRows) -> tuple[NDArray[np.float64], int]:
        """See Model."""
        scores, unseen = super().scores_and_unseen(rows)
        lacking = np.flatnonzero(self._lack(rows))
        if len(lacking):
            scores[lacking] = self.incomplete.scores(rows.taken(lacking))
        return scores, unseen

    def contributions(self, row: SparseRows, column: int) -> Contributions:
        """See LinearModel; by the model that scores the row."""
        if self._lack(row).any():
            return self.incomplete.contributions(row, column)
        return super().contributions(row, column)

    def weights_to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """See Model."""
        (arrays, meta), (others, about) = super().weights_to_arrays(), self.incomplete.weights_to_arrays()
        arrays |= {f"{_PREFIX}{name}": array for name, array in others.items()}
        return arrays | {"required": self.required}, meta | {"incomplete": about}

    @classmethod
    def read(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of ``weights_to_arrays``."""
        others = {name.removeprefix(_PREFIX): each for name, each in arrays.items() if name.startswith(_PREFIX)}
        own = LinearModel.read(arrays, meta)
        return cls(
            own.classes,
            own.n_features,
            own.features,
            own.coefficients,
            own.intercepts,
            arrays["required"],
            LinearModel.read(others, meta["incomplete"]),
        )

    def renumbered(self, numbers: NDArray[np.int64]) -> Self:
        """See Model."""
        first, last = self.required.T
        return replace(
            super().renumbered(numbers),
            required=np.column_stack([numbers[first], numbers[last - 1] + 1]),
            incomplete=self.incomplete.renumbered(numbers),
        )

    def _lack(self, rows: SparseRows) -> NDArray[np.bool_]:
        """shape (n_rows,): whether a row lacks a part."""
        return np.asarray(np.any([~rows.held(*columns) for columns in self.required.tolist()], axis=0), bool)
