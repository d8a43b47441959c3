"""Calibrates the solutions of a training by their held-out scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.problem.result import Result
from core.progress import Checkpoint
from core.validation.calibration import Calibration, fit_calibration, fit_calibration_to_labels


def calibration_of(
    results: Sequence[Result],
    held_out: NDArray[np.float64],
    class_indices: NDArray[np.integer[Any]],
    n_classes: int,
    fractions: NDArray[np.float64] | None,
    checkpoint: Checkpoint,
) -> Calibration:
    """Fitted to the class fractions of the unlabeled documents or, if there are none of either, to those of the labels.

    ``results`` are one a two-class problem, ``held_out`` of shape (n_labeled, n_problems). Algorithms that learn from labels alone have no
    ``fractions``, of shape (n_classes,). Raises what ``checkpoint`` does.
    """
    scores = np.column_stack([result.unlabeled_scores for result in results])
    if fractions is None or not len(scores):
        return fit_calibration_to_labels(held_out, class_indices, n_classes, checkpoint)
    return fit_calibration(held_out, class_indices, scores, fractions, checkpoint)
