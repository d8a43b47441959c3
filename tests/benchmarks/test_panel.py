"""The panel's draws and measures."""

import numpy as np
import pytest

from benchmarks.panel.measures import class_fractions, error, total_variation
from benchmarks.panel.methods import Score
from benchmarks.panel.page import page
from benchmarks.panel.sets import DRAWS, LABELS, Draw, drawn


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("seed", range(3))
def test_as_many_labels_and_none_missing(draw: Draw, seed: int) -> None:
    class_indices = np.random.default_rng(0).choice(3, 300, p=[0.7, 0.28, 0.02]).astype(np.int32)
    labeled = drawn(class_indices, 4, draw, seed)
    counts = np.bincount(class_indices[labeled], minlength=3)
    assert len(np.unique(labeled)) == 12
    assert (np.diff(labeled) > 0).all()
    assert counts.min() >= 1
    assert draw == "random" or counts.tolist() == [4, 4, 4]
    assert not np.array_equal(labeled, drawn(class_indices, 4, draw, seed + 10))


def test_random_labels_follow_the_classes() -> None:
    class_indices = np.repeat([0, 1], [900, 100]).astype(np.int32)
    counts = np.sum([np.bincount(class_indices[drawn(class_indices, 10, "random", seed)], minlength=2) for seed in range(50)], axis=0)
    assert 0.08 < counts[1] / counts.sum() < 0.18


def test_measures() -> None:
    truth = np.array([0, 0, 1, 1])
    assert error(np.array([0, 1, 1, 1]), truth) == 0.25
    assert total_variation(class_fractions(np.array([0, 1, 1, 1]), 2), class_fractions(truth, 2)) == 0.25


def test_the_page_says_what_was_missed() -> None:
    def scores(auto: float, rival: float) -> dict[str, Score]:
        others = {method: Score(rival, 1.0) for method in ("SVM", "SelfTraining", "LabelSpreading")}
        return {"TSVM, true fractions": Score(0.1, 1.0), "auto": Score(auto, 5.0, 0.04, 0.02, "tsvm"), **others}

    name = next(iter(LABELS))
    good, bad = (page({(name, draw, 0): scores(auto, 0.2) for draw in DRAWS}, 1) for auto in (0.11, 0.3))
    assert "MISSED" not in good
    assert bad.count("MISSED") == 3
    assert f"worst set ({name})" in bad
