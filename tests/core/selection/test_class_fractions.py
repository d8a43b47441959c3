"""The estimate of the class fractions by scores of labels left out."""

import numpy as np

from core.selection.class_fractions import combine_evidence
from core.selection.data import SelectionData
from core.selection.held_out import FoldScores
from core.selection.posterior import grid_around
from core.selection.prediction import ERROR, Prediction
from core.selection.registry import left_out_bytes
from tests.core.problems import rows_of
from tests.memory import measured


def test_what_evidence_takes_is_in_the_estimate_of_memory(rng: np.random.Generator) -> None:
    """With many labels their scores at several fractions are most of the memory of a selection."""
    n_labeled, n_classes = 40_000, 2
    data = SelectionData.of(rows_of(np.ones((n_labeled + 10, 1))), np.arange(n_labeled) % n_classes, ["a", "b"], 0)
    held_out = FoldScores(rng.standard_normal(n_labeled), [rng.standard_normal(10) for _ in range(data.n_folds)])
    with measured() as memory:
        combine_evidence(data, held_out, Prediction(1 / 2, ERROR), grid_around(0.3))
    assert 0.7 * memory.peak < left_out_bytes(n_labeled, n_classes) < 1.5 * memory.peak
