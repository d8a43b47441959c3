"""The estimate of class fractions by paths that others have solved."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from core.documents.drawn import Draw
from core.selection import log_evidence
from core.selection.class_fractions import combine_evidence, path_scores, path_scores_at
from core.selection.data import SelectionData
from core.selection.eligibility import COARSE_FRACTIONS, FINE_FRACTIONS, path_bytes
from core.selection.fraction_path import FractionPath, shifted_path
from core.selection.posterior import grid_around, refine_grid
from core.selection.prediction import ERROR, Prediction
from core.watch import Stopped
from tests.core.problems import rows_of

GRID = np.array([0.1, 0.3, 0.5, 0.7])
N_CLASSES, N_LABELED = 4, 24


def selection_data() -> SelectionData:
    rows = rows_of(np.random.default_rng(0).standard_normal((60, 5)))
    return SelectionData.of(rows, np.arange(N_LABELED) % N_CLASSES, [f"c{k}" for k in range(N_CLASSES)], 0)


def paths_of(data: SelectionData) -> list[list[FractionPath]]:
    """Random scores shifted for each fraction, for each class without each fold and with all labels."""
    rng = np.random.default_rng(1)
    return [[shifted_path(rng.standard_normal(N_LABELED), rng.standard_normal(36), GRID) for _ in range(data.n_folds + 1)] for _ in data.problems]


@pytest.mark.parametrize("fine", [False, True])
def test_what_paths_take_is_in_the_estimate_of_memory(fine: bool) -> None:
    """Of many labels their scores along paths are most of what a selection holds."""
    n_labeled, n_classes = 4000, 3
    coarse = grid_around(0.3)
    grid = refine_grid(coarse) if fine else coarse
    assert len(grid) == (FINE_FRACTIONS if fine else COARSE_FRACTIONS)
    data = SelectionData.of(rows_of(np.ones((n_labeled + 10, 1))), np.arange(n_labeled) % n_classes, ["a", "b", "c"], 0)
    rng = np.random.default_rng(0)
    tracemalloc.start()
    paths = [[shifted_path(rng.standard_normal(n_labeled), rng.standard_normal(10), grid) for _ in range(data.n_folds + 1)] for _ in range(n_classes)]
    combine_evidence(data, paths, [Prediction(1 / 3, ERROR)] * n_classes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.9 * peak < path_bytes(n_labeled, n_classes, len(grid)) < 1.1 * peak


def test_scores_at_a_fraction_lie_between_those_that_were_tried() -> None:
    data = selection_data()
    paths = paths_of(data)[0]
    scores = path_scores(paths, data.folds)
    np.testing.assert_allclose(path_scores_at(paths, data.folds, 0.3), scores[1])
    between = path_scores_at(paths, data.folds, 0.4)
    assert ((between - scores[1]) * (scores[2] - between) >= 0).all()
    alone = [replace_grid(path, 1) for path in paths]
    for fraction in (0.0, 0.3, 0.4, 1.0):
        np.testing.assert_array_equal(path_scores_at(alone, data.folds, fraction), scores[1])


def replace_grid(path: FractionPath, position: int) -> FractionPath:
    """The path with one of its fractions alone."""
    alone = FractionPath(path.fractions[[position]])
    alone.objectives, alone.labeled = path.objectives[[position]], path.labeled[[position]]
    return alone


def test_a_stop_is_heard_between_classes() -> None:
    data = selection_data()
    asked = 0

    def stop() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise Stopped

    with pytest.raises(Stopped):
        combine_evidence(data, paths_of(data), [Prediction(0.25, ERROR)] * N_CLASSES, checkpoint=stop)
    assert asked == 2


@pytest.mark.parametrize("sampled", [False, True])
def test_rates_of_the_other_classes_rest_on_what_is_predicted_or_sampled(sampled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = log_evidence.rates_above

    def spy(above: Any, y: Any, class_indices: Any, shares: Any) -> log_evidence.Rates:
        seen.append(shares)
        return original(above, y, class_indices, shares)

    monkeypatch.setattr(log_evidence, "rates_above", spy)
    class_indices = np.repeat(np.arange(N_CLASSES), [12, 6, 4, 2])
    drawn = np.full(N_LABELED, Draw.RANDOM if sampled else Draw.CHOSEN, np.int8)
    data = SelectionData.of(rows_of(np.ones((60, 5))), class_indices, [f"c{k}" for k in range(N_CLASSES)], 0, drawn=drawn)
    predicted = [0.1, 0.2, 0.7, 0.0]
    combine_evidence(data, paths_of(data), [Prediction(fraction, ERROR) for fraction in predicted])
    np.testing.assert_allclose(seen[-1], np.array([12, 6, 4, 2]) / 24 if sampled else [0.1, 0.2, 0.7, log_evidence.LEAST])
