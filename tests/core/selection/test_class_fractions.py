"""The estimate of class fractions by paths that others have solved."""

import tracemalloc

import numpy as np
import pytest

from core.selection.class_fractions import combine_evidence, path_scores, path_scores_at
from core.selection.data import SelectionData
from core.selection.fraction_path import FractionPath, shifted_path
from core.selection.posterior import grid_around, refine_grid
from core.selection.prediction import ERROR, Prediction
from core.selection.registry import COARSE_FRACTIONS, FINE_FRACTIONS, path_bytes
from tests.core.problems import rows_of

GRID = np.array([0.1, 0.3, 0.5, 0.7])
N_CLASSES, N_LABELED = 4, 24


def selection_data() -> SelectionData:
    rows = rows_of(np.random.default_rng(0).standard_normal((60, 5)))
    return SelectionData.of(rows, np.arange(N_LABELED) % N_CLASSES, [f"c{k}" for k in range(N_CLASSES)], 0)


def paths_of(data: SelectionData) -> list[list[FractionPath]]:
    """Random scores shifted for each fraction, for each class without each fold and with all labels."""
    rng = np.random.default_rng(1)
    return [
        [shifted_path(rng.standard_normal(N_LABELED), rng.standard_normal(36), GRID) for _ in range(data.n_folds + 1)]
        for _ in data.problems
    ]


@pytest.mark.parametrize("fine", [False, True])
def test_what_paths_take_is_in_the_estimate_of_memory(fine: bool) -> None:
    """With many labels their scores along paths are most of the memory of a selection."""
    n_labeled, n_classes = 40_000, 2
    coarse = grid_around(0.3)
    grid = refine_grid(coarse) if fine else coarse
    assert len(grid) == (FINE_FRACTIONS if fine else COARSE_FRACTIONS)
    data = SelectionData.of(rows_of(np.ones((n_labeled + 10, 1))), np.arange(n_labeled) % n_classes, ["a", "b"], 0)
    rng = np.random.default_rng(0)
    tracemalloc.start()
    paths = [
        [shifted_path(rng.standard_normal(n_labeled), rng.standard_normal(10), grid) for _ in range(data.n_folds + 1)]
        for _ in data.problems
    ]
    combine_evidence(data, paths, Prediction(1 / 2, ERROR))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.7 * peak < path_bytes(n_labeled, n_classes, len(grid)) < 1.5 * peak


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
