"""The ranking of documents by score, against scikit-learn and against the mean over all orders."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve

from core.evaluation.measures import Ranking, ranked
from tests.there import there

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
def test_as_scikit_learn_has_it(pair: Ranked) -> None:
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


def test_break_even_is_where_precision_and_recall_meet() -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(2000) < 0.3
    scores = rng.normal(size=2000) + positive
    precision, recall, _ = precision_recall_curve(positive, scores)
    meeting = int(np.argmin(np.abs(precision - recall)))
    assert precision[meeting] == recall[meeting]
    assert 0.4 < made((scores, positive)).break_even == pytest.approx(precision[meeting])


def test_extremes() -> None:
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


def test_a_curve_keeps_its_shape() -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(50_000) < 0.2
    found = made((rng.normal(size=50_000) + positive, positive))
    points = found.curve(50)
    assert len(points) == 50
    area = float((np.diff(points[:, 0], prepend=0) * points[:, 1]).sum())
    assert area == pytest.approx(found.average_precision, abs=0.01)
