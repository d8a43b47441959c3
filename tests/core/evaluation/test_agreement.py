"""Agreement of people, against published examples, and of sets of labels, against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics

from core.evaluation.measures import LabelConfusion, RankingCounts
from core.evaluation.voting import cohen, krippendorff

_OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Krippendorff, Computing Krippendorff's alpha-reliability, 2011, section C: labels by person, dots where missing."""


def test_krippendorff_of_the_published_example() -> None:
    documents = [[label for label in each if label != "."] for each in zip(*map(str.split, _OBSERVERS), strict=True)]
    assert krippendorff(documents) == pytest.approx(0.743, abs=5e-4)


def test_cohen_of_a_table() -> None:
    labels = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen(labels) == pytest.approx(0.4)


def test_those_who_agree_always_have_one() -> None:
    assert cohen([("a", "a"), ("b", "b")]) == 1.0
    assert krippendorff([["a", "a"], ["b", "b", "b"]]) == 1.0


def test_where_nothing_can_be_compared_there_is_none() -> None:
    assert cohen([]) is None
    assert cohen([("a", "a")] * 5) is None
    assert krippendorff([["a"], ["b"]]) is None
    assert krippendorff([["a", "a"], ["a", "a"]]) is None


def test_two_people_by_chance_have_about_zero() -> None:
    labels = [(one, other) for one in "ab" for other in "ab"] * 25
    assert cohen(labels) == 0.0
    assert krippendorff(labels) == pytest.approx(0.005, abs=1e-9)


RNG = np.random.default_rng(0)
TRUTH = RNG.random((60, 7)) < 0.25
GIVEN = TRUTH ^ (RNG.random(TRUTH.shape) < 0.15)
TRUTH[:, 5] = False
GIVEN[:, 6] = False
SCORES = np.round(RNG.normal(size=TRUTH.shape) + TRUTH, 1)


def test_measures_are_those_of_scikit_learn() -> None:
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


def test_rankings_are_those_of_scikit_learn() -> None:
    counts = RankingCounts()
    for part in (slice(0, 25), slice(25, 60)):
        counts.add(TRUTH[part], SCORES[part])
    found = counts.ranking()
    assert found.coverage_error == pytest.approx(metrics.coverage_error(TRUTH, SCORES))
    assert found.label_ranking_average_precision_score == pytest.approx(
        metrics.label_ranking_average_precision_score(TRUTH, SCORES)
    )
    assert found.label_ranking_loss == pytest.approx(metrics.label_ranking_loss(TRUTH, SCORES))
