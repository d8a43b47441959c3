"""A model's prediction of the fractions, and its error."""

import numpy as np
import pytest
from scipy.special import logit

from core.selection.prediction import ERROR, centred_prediction, midpoint, midpoints, predicted_fraction

CLASSES = np.repeat([0, 1], [40, 80])


def scores_of(rng: np.random.Generator, counts: tuple[int, int], shift: float) -> np.ndarray:
    """Scores of two classes around −1 and +1, all of them moved."""
    return np.concatenate([rng.normal(-1, 0.5, counts[0]), rng.normal(1, 0.5, counts[1])]) + shift


@pytest.mark.parametrize("shift", [-2.0, 0.0, 2.0])
def test_a_shift_of_all_scores_changes_nothing(shift: float, rng: np.random.Generator) -> None:
    """As of a model that gives one class nearly everything since more of its documents are labeled."""
    scores, held_out = scores_of(rng, (900, 100), shift), scores_of(rng, (40, 80), shift)
    found = centred_prediction(scores, held_out, CLASSES, balanced=False)
    assert found.fraction == pytest.approx(0.1, abs=0.04)
    fewest = ERROR * np.sqrt(20 / 80)  # of as many labels on both sides
    assert fewest < found.error < 2 * fewest


def test_without_labels_left_out_the_scores_are_taken_as_they_are() -> None:
    scores = scores_of(np.random.default_rng(0), (900, 100), 0.0)
    nothing = np.full(120, np.nan)
    even, uneven = (centred_prediction(scores, nothing, CLASSES, balanced) for balanced in (True, False))
    assert even.fraction == uneven.fraction == predicted_fraction(scores)
    assert even.error == ERROR < uneven.error


def test_the_fewer_labels_the_larger_the_error() -> None:
    rng = np.random.default_rng(1)
    scores, held_out = scores_of(rng, (700, 300), 0.0), scores_of(rng, (40, 80), 0.0)
    few = np.full(120, np.nan)
    few[[0, 1, 40, 41]] = held_out[[0, 1, 40, 41]]
    errors = [centred_prediction(scores, each, CLASSES, balanced=False).error for each in (held_out, few)]
    assert errors[0] < errors[1]


def test_the_other_classes_count_the_same_whatever_their_number_of_labels() -> None:
    """By the definition, and the deviation by repeated draws."""
    rng = np.random.default_rng(2)
    class_indices = np.repeat([0, 1, 2], [4, 5, 60])
    middles = []
    for _ in range(2000):
        scores = np.array([2.0, 0.0, -3.0])[class_indices] + rng.normal(0, 0.7, 69)
        middles.append(midpoint(scores, class_indices, 0)[:2])
    found = np.array(middles)
    assert found[:, 0].mean() == pytest.approx((2.0 + (0.0 - 3.0) / 2) / 2, abs=0.02)
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=0.1)
    assert midpoint(np.ones(5), np.zeros(5, int), 1).deviation is None


def test_what_is_hardly_told_apart_predicts_little() -> None:
    rng = np.random.default_rng(3)
    errors = []
    for gap in (0.0, 0.5, 3.0):
        scores, held_out = rng.normal(0, 1, 400), rng.normal(0, 1, 120) + gap * CLASSES
        errors.append(centred_prediction(scores, held_out, CLASSES, balanced=False).error)
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 3 * errors[2]


def test_a_prediction_is_as_unsure_as_another_threshold_changes_it() -> None:
    """The error against predictions with the scores moved."""
    rng = np.random.default_rng(4)
    held_out, scores = 2.0 * CLASSES + rng.standard_normal(120), rng.standard_normal(500)
    middle = midpoint(held_out, CLASSES, 1)
    assert middle.deviation is not None
    found = centred_prediction(scores, held_out, CLASSES, balanced=True)
    ends = [(scores - middle.score + shift > 0).mean() for shift in (middle.deviation, -middle.deviation)]
    doubt = (logit(ends[0]) - logit(ends[1])) / 2
    assert found.fraction == (scores > middle.score).mean()
    assert found.error == pytest.approx(np.sqrt((ERROR * np.sqrt(20 / 80) / middle.separation) ** 2 + doubt**2))


def test_every_class_has_a_midpoint() -> None:
    rng = np.random.default_rng(5)
    class_indices = np.repeat([0, 1, 2], 12)
    held_out = 2 * np.eye(3)[class_indices] + rng.standard_normal((36, 3))
    found = midpoints(held_out, class_indices)
    assert found.tolist() == [midpoint(held_out[:, each], class_indices, each).score for each in range(3)]


def test_more_labels_left_out_make_a_prediction_surer() -> None:
    """Of scores that tell the classes apart: from twenty labels on the error falls with the square root of their
    number.
    """
    scores = np.linspace(-3, 3, 1001)
    errors = []
    for n in (5, 10, 40, 160):
        held_out, class_indices = np.repeat([-2.0, 2.0], n), np.repeat([0, 1], n)
        errors.append(centred_prediction(scores, held_out, class_indices, balanced=True).error)
    assert errors[0] > errors[1] > 0.3
    assert errors[2] == pytest.approx(0.3 * np.sqrt(20 / 80), rel=0.1)
    assert errors[3] == pytest.approx(0.3 * np.sqrt(20 / 320), rel=0.1)
