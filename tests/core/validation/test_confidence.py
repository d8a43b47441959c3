"""Confidence by labels left out, against SciPy's laws."""

import numpy as np
import pytest
from scipy import stats

from core.documents.drawn import Draw
from core.validation.calibration import Calibration
from core.validation.confidence import Confidence, Validated


def test_the_least_accuracy_is_wilsons() -> None:
    oracle = stats.binomtest(17, 20).proportion_ci(0.90, method="wilson").low
    assert Confidence(20, 17, 0.5).least_accuracy == pytest.approx(oracle, abs=1e-4)


@pytest.mark.parametrize(
    ("right", "level"), [(20, "high"), (19, "high"), (16, "low"), (14, "none"), (10, "none"), (0, "none")]
)
def test_levels_of_twenty_labels(right: int, level: str) -> None:
    assert Confidence(20, right, 0.5).level == level


def test_one_class_for_all_is_chance_however_many_are_right() -> None:
    found = Confidence.of(np.zeros(30, int), np.repeat([0, 1], [27, 3]))
    assert (found.right, found.by_chance) == (27, 0.9)
    assert found.level == "none"
    assert "chance" in found.sentence()


def test_sure_predictions_that_are_often_wrong_know_nothing() -> None:
    assert Confidence(100, 70, 0.5).level == "low"
    sure = Confidence(100, 70, 0.5, likelier=False)
    assert sure.level == "none"
    assert "as sure where it is wrong" in sure.sentence()


def test_without_labels_left_out_nothing_is_known() -> None:
    nothing = Confidence.of(np.zeros(0, int), np.zeros(0, int))
    assert nothing.level == "none"
    assert "at least two" in nothing.sentence()


def test_random_predictions_are_seldom_trusted(rng: np.random.Generator) -> None:
    levels = [Confidence.of(rng.integers(0, 3, 30), rng.integers(0, 3, 30)).level for _ in range(300)]
    assert levels.count("none") > 270


@pytest.mark.parametrize(("n_plain", "total"), [(12, 12), (6, 18)])
def test_chosen_documents_are_left_aside_where_there_are_enough_others(n_plain: int, total: int) -> None:
    class_indices = np.tile([0, 1], n_plain // 2 + 6)
    held_out = (2.0 * class_indices - 1)[:, None]
    held_out[n_plain:] *= -1  # all wrong, as a model is where it was unsure
    drawn = np.where(np.arange(len(class_indices)) < n_plain, Draw.UNKNOWN, Draw.CHOSEN).astype(np.int8)
    calibration = Calibration(np.array([3.0]), np.zeros(1), np.ones(2))
    found = Validated(calibration, held_out).confidence(class_indices, drawn)
    assert (found.total, found.right) == (total, n_plain)
