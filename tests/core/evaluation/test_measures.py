"""Confusion, rankings, reliability and sets of labels, against scikit-learn."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, precision_recall_curve

from core.evaluation.measures import (
    BINS,
    Confusion,
    LabelConfusion,
    Ranking,
    RankingCounts,
    Reliability,
    doubtful,
    ranked,
)
from tests.there import there

ClassIndices = NDArray[np.integer[Any]]
N_CLASSES = 4


@st.composite
def labels(draw: st.DrawFn) -> tuple[ClassIndices, ClassIndices]:
    """Labels that documents have, some of them beyond the classes, and labels that they were given."""
    n = draw(st.integers(1, 40))
    truth = draw(st.lists(st.integers(0, N_CLASSES + 1), min_size=n, max_size=n))
    answer = draw(st.lists(st.integers(0, N_CLASSES - 1), min_size=n, max_size=n))
    return np.array(truth), np.array(answer)


def counted(truth: ClassIndices, answer: ClassIndices, cut: int = 0) -> Confusion:
    confusion = Confusion(N_CLASSES)
    confusion.add(truth[:cut], answer[:cut])
    confusion.add(truth[cut:], answer[cut:])
    return confusion


@given(labels(), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_the_confusion_is_that_of_scikit_learn(pair: tuple[ClassIndices, ClassIndices], cut: int) -> None:
    truth, answer = pair
    confusion = counted(truth, answer, cut)
    n_labels = max(N_CLASSES, truth.max() + 1)
    every = np.arange(n_labels)
    np.testing.assert_array_equal(confusion.counts, metrics.confusion_matrix(truth, answer, labels=every))
    found = confusion.agreement()
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        truth, answer, labels=every, zero_division=np.nan
    )
    np.testing.assert_array_equal(found.support, support)
    np.testing.assert_array_equal(found.given, np.bincount(answer, minlength=n_labels))
    for ours, theirs in ((found.precision, precision), (found.recall, recall), (found.f1, f1)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, answer))
    assert found.accuracy == pytest.approx(metrics.f1_score(truth, answer, average="micro"))
    assert found.macro.f1 == pytest.approx(metrics.f1_score(truth, answer, average="macro"))
    assert found.macro.precision == pytest.approx(
        metrics.precision_score(truth, answer, average="macro", zero_division=0)
    )
    assert found.macro.recall == pytest.approx(metrics.recall_score(truth, answer, average="macro", zero_division=0))


def test_a_class_that_nothing_is_of_has_no_figures() -> None:
    found = counted(np.array([0, 0, 1]), np.array([0, 1, 1])).agreement()
    assert np.isnan([found.precision[2], found.recall[2], found.f1[2]]).all()
    assert found.macro.f1 == pytest.approx(2 / 3)


def test_a_label_that_cannot_be_given_is_never_right() -> None:
    found = counted(np.array([0, 5, 5, 1]), np.array([0, 0, 1, 1])).agreement()
    assert (found.support[5], found.given[5], found.recall[5], found.f1[5]) == (2, 0, 0.0, 0.0)
    assert found.accuracy == 0.5
    assert found.macro.f1 == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_labels_are_numbered_however_they_are_typed() -> None:
    truth = np.array([3, 1, 3], np.int32)
    answer = np.array([3, 3, 1], np.intp)
    np.testing.assert_array_equal(counted(truth, answer).counts[[1, 3]][:, [1, 3]], [[0, 1], [1, 1]])


Ranked = tuple[NDArray[np.float64], NDArray[np.bool_]]


@st.composite
def rankings(draw: st.DrawFn, most: int = 60, values: int = 8) -> Ranked:
    """Scores, many of them the same, and which documents are of the class; at least one is."""
    n = draw(st.integers(1, most))
    scores = draw(st.lists(st.integers(-values, values), min_size=n, max_size=n))
    positive = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any))
    return np.array(scores) / 4, np.array(positive)


def made(pair: Ranked) -> Ranking:
    return there(ranked(*pair))


def break_even_of(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """The mean of the precision among the top documents, over all orders of those with the same score."""
    n_positive = int(positive.sum())
    found = []
    for order in permutations(range(len(scores))):
        ordered = list(order)
        if (np.diff(scores[ordered]) <= 0).all():
            found.append(positive[ordered][:n_positive].mean())
    return float(np.mean(found))


@given(rankings())
@settings(max_examples=60, deadline=None)
def test_a_ranking_is_that_of_scikit_learn(pair: Ranked) -> None:
    scores, positive = pair
    found = made(pair)
    assert found.average_precision == pytest.approx(average_precision_score(positive, scores))
    precision, recall, _ = precision_recall_curve(positive, scores)
    # from the highest threshold, without the end that scikit-learn adds, where the recall grows
    recall, precision = recall[:-1][::-1], precision[:-1][::-1]
    grows = np.diff(recall, prepend=0) > 0
    np.testing.assert_allclose(found.hits / found.hits[-1], recall[grows])
    np.testing.assert_allclose(found.hits / found.taken, precision[grows])
    np.testing.assert_array_equal(found.before, [(scores > score).sum() for score in np.unique(scores[positive])[::-1]])


@given(rankings(most=6, values=2))
@settings(max_examples=100, deadline=None)
def test_break_even_is_the_mean_over_the_orders_of_ties(pair: Ranked) -> None:
    assert made(pair).break_even == pytest.approx(break_even_of(*pair))


def test_break_even_is_where_precision_and_recall_meet(rng: np.random.Generator) -> None:
    positive = rng.random(2000) < 0.3
    scores = rng.normal(size=2000) + positive
    precision, recall, _ = precision_recall_curve(positive, scores)
    meeting = int(np.argmin(np.abs(precision - recall)))
    assert precision[meeting] == recall[meeting]
    assert 0.4 < made((scores, positive)).break_even == pytest.approx(precision[meeting])


def test_the_best_and_the_worst_ranking() -> None:
    scores = np.array([3.0, 2.0, 1.0, 0.0])
    assert made((scores, np.array([True, True, False, False]))).break_even == 1
    assert made((scores, np.array([False, False, True, True]))).break_even == 0
    assert made((scores, np.array([True, True, True, True]))).break_even == 1
    assert made((np.zeros(4), np.array([True, False, False, False]))).break_even == 0.25
    assert ranked(scores, np.zeros(4, bool)) is None


@given(rankings(), st.integers(2, 20))
@settings(max_examples=100, deadline=None)
def test_a_curve_has_few_points_and_all_of_them_are_true(pair: Ranked, most: int) -> None:
    found = made(pair)
    points = found.curve(most)
    assert 1 <= len(points) <= most
    every = {(hits / found.hits[-1], hits / taken) for hits, taken in zip(found.hits, found.taken, strict=True)}
    assert {tuple(point) for point in points.tolist()} <= every
    assert (np.diff(points[:, 0]) > 0).all()
    assert points[-1, 0] == 1


def test_a_curve_keeps_its_shape(rng: np.random.Generator) -> None:
    positive = rng.random(50_000) < 0.2
    found = made((rng.normal(size=50_000) + positive, positive))
    points = found.curve(50)
    assert len(points) == 50
    area = float((np.diff(points[:, 0], prepend=0) * points[:, 1]).sum())
    assert area == pytest.approx(found.average_precision, abs=0.01)


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
def test_reliability_is_that_of_scikit_learn(n_classes: int) -> None:
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


def test_the_least_likely_label_comes_first_and_equals_in_their_order() -> None:
    """However large the margin to the likeliest class is: the last row's is the largest."""
    thirds = [[0.4, 0.3, 0.3], [0.01, 0.5, 0.49], [0.2, 0.4, 0.4], [0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.1, 0.9, 0.0]]
    assert doubtful(np.array(thirds), np.array([0, 0, 0, 0, 2, 0])).tolist() == [1, 5, 2, 3]


def test_what_is_likeliest_is_not_doubted() -> None:
    assert doubtful(np.eye(3), np.arange(3)).tolist() == []
    assert doubtful(np.zeros((0, 3)), np.zeros(0, int)).tolist() == []


RNG = np.random.default_rng(0)
TRUTH = RNG.random((60, 7)) < 0.25
GIVEN = TRUTH ^ (RNG.random(TRUTH.shape) < 0.15)
TRUTH[:, 5] = False
GIVEN[:, 6] = False
SCORES = np.round(RNG.normal(size=TRUTH.shape) + TRUTH, 1)


def test_measures_of_sets_are_those_of_scikit_learn() -> None:
    counts = LabelConfusion(7)
    for part in (slice(0, 25), slice(25, 60)):
        counts.add(TRUTH[part], GIVEN[part])
    found = counts.agreement()
    for average in ("micro", "macro", "weighted", "samples"):
        expected = metrics.precision_recall_fscore_support(TRUTH, GIVEN, average=average, zero_division=0)[:3]
        assert getattr(found, average) == pytest.approx(expected)
    by_label = metrics.precision_recall_fscore_support(TRUTH, GIVEN, average=None, zero_division=0)
    for ours, theirs in zip((found.precision, found.recall, found.f1, found.support), by_label, strict=True):
        assert ours == pytest.approx(theirs)
    assert found.subset_accuracy == metrics.accuracy_score(TRUTH, GIVEN)
    assert found.hamming_loss == pytest.approx(metrics.hamming_loss(TRUTH, GIVEN))


def test_rankings_of_sets_are_those_of_scikit_learn() -> None:
    counts = RankingCounts()
    for part in (slice(0, 25), slice(25, 60)):
        counts.add(TRUTH[part], SCORES[part])
    found = counts.ranking()
    assert found.coverage_error == pytest.approx(metrics.coverage_error(TRUTH, SCORES))
    assert found.label_ranking_average_precision_score == pytest.approx(
        metrics.label_ranking_average_precision_score(TRUTH, SCORES)
    )
    assert found.label_ranking_loss == pytest.approx(metrics.label_ranking_loss(TRUTH, SCORES))
