"""Agreement of sets of labels, against scikit-learn's functions of the same names."""

import numpy as np
import pytest
from sklearn import metrics

from core.evaluation.measures import LabelConfusion, RankingCounts

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
