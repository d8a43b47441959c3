"""Probabilities compared with labels, against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from core.evaluation.measures import BINS, Reliability, doubtful

Drawn = tuple[np.ndarray, np.ndarray]


def drawn(n_classes: int, n_rows: int = 3000, sharp: float = 2.0) -> Drawn:
    """True probabilities, and labels drawn by them."""
    rng = np.random.default_rng(n_classes)
    odds = np.exp(sharp * rng.normal(size=(n_rows, n_classes)))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    truth = (rng.random((n_rows, 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
    return probabilities, np.minimum(truth, n_classes - 1)


def slow_error(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """The expected calibration error, a bin at a time."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    total = 0.0
    for place in range(BINS):
        last = place == BINS - 1
        inside = (sure >= place / BINS) & ((sure < (place + 1) / BINS) | last)
        if inside.any():
            total += inside.sum() * abs(right[inside].mean() - sure[inside].mean())
    return float(total / len(truth))


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_as_scikit_learn_has_it(n_classes: int) -> None:
    probabilities, truth = drawn(n_classes)
    found = Reliability.of(probabilities, truth)
    labels = np.arange(n_classes)
    assert found.log_loss == pytest.approx(log_loss(truth, probabilities, labels=labels))
    assert found.brier == pytest.approx(
        brier_score_loss(truth, probabilities if n_classes > 2 else probabilities[:, 1], labels=labels)
    )
    assert found.expected_error == pytest.approx(slow_error(probabilities, truth))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_batches_count_like_the_whole(n_classes: int) -> None:
    probabilities, truth = drawn(n_classes)
    whole, parts = Reliability.of(probabilities, truth), Reliability()
    for start in range(0, len(truth), 700):
        parts.add(probabilities[start : start + 700], truth[start : start + 700])
    assert (parts.log_loss, parts.brier, parts.expected_error) == pytest.approx(
        (whole.log_loss, whole.brier, whole.expected_error)
    )
    assert [each.documents for each in parts.bins] == [each.documents for each in whole.bins]


def test_what_is_as_it_says_has_little_error_and_what_boasts_has_more() -> None:
    probabilities, truth = drawn(3, 20_000)
    boasting = probabilities**3 / (probabilities**3).sum(axis=1, keepdims=True)
    assert Reliability.of(probabilities, truth).expected_error < 0.02
    assert Reliability.of(boasting, truth).expected_error > 0.1


def test_the_error_of_few() -> None:
    truth = np.array([0, 0, 1, 1])
    sure = np.array([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.8, 0.2]])
    assert Reliability.of(sure, truth).expected_error == pytest.approx(abs(0.75 - 0.8))
    assert Reliability.of(np.eye(2)[1 - truth], truth).expected_error == 1.0


def test_bins_tell_what_is_in_them() -> None:
    probabilities = np.array([[0.9, 0.1], [0.88, 0.12], [0.0, 1.0], [0.5, 0.5]])
    bins = Reliability.of(probabilities, np.array([0, 1, 1, 1])).bins
    assert [each.documents for each in bins] == [0] * 7 + [1] + [0] * 5 + [2, 1]
    assert (bins[13].confidence, bins[13].accuracy) == pytest.approx((0.89, 0.5))
    assert (bins[14].start, bins[14].end, bins[14].confidence, bins[14].accuracy) == pytest.approx((14 / 15, 1, 1, 1))
    assert bins[7].accuracy == 0.0
    assert np.isnan([bins[0].confidence, bins[0].accuracy]).all()


def test_a_label_beyond_the_classes_has_no_probability() -> None:
    probabilities, truth = np.array([[0.2, 0.3, 0.5]]), np.array([7])
    found = Reliability.of(probabilities, truth)
    assert found.brier == pytest.approx(0.04 + 0.09 + 0.25 + 1)
    assert found.log_loss == pytest.approx(-np.log(np.finfo(float).eps))
    assert found.expected_error == pytest.approx(0.5)


def test_the_largest_margin_comes_first_and_equals_in_their_order() -> None:
    probabilities = np.array([[0.4, 0.6], [0.1, 0.9], [0.9, 0.1], [0.4, 0.6], [0.5, 0.5]])
    assert doubtful(probabilities, np.array([0, 0, 0, 0, 1])).tolist() == [1, 0, 3]


def test_what_is_likeliest_is_not_doubted() -> None:
    assert doubtful(np.eye(3), np.arange(3)).tolist() == []
    assert doubtful(np.zeros((0, 3)), np.zeros(0, int)).tolist() == []
