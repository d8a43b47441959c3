"""The confusion matrix and its figures, against scikit-learn."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics

from core.evaluation.measures import Confusion

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
def test_as_scikit_learn_has_it(pair: tuple[ClassIndices, ClassIndices], cut: int) -> None:
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
    assert found.micro_f1 == pytest.approx(metrics.f1_score(truth, answer, average="micro"))
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, answer, average="macro"))
    assert found.macro_precision == pytest.approx(
        metrics.precision_score(truth, answer, average="macro", zero_division=0)
    )
    assert found.macro_recall == pytest.approx(metrics.recall_score(truth, answer, average="macro", zero_division=0))


def test_a_class_that_nothing_is_of_has_no_figures() -> None:
    found = counted(np.array([0, 0, 1]), np.array([0, 1, 1])).agreement()
    assert np.isnan([found.precision[2], found.recall[2], found.f1[2]]).all()
    assert found.macro_f1 == pytest.approx(2 / 3)


def test_a_label_that_cannot_be_given_is_never_right() -> None:
    found = counted(np.array([0, 5, 5, 1]), np.array([0, 0, 1, 1])).agreement()
    assert (found.support[5], found.given[5], found.recall[5], found.f1[5]) == (2, 0, 0.0, 0.0)
    assert found.accuracy == 0.5
    assert found.macro_f1 == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_labels_are_numbered_however_they_are_typed() -> None:
    truth = np.array([3, 1, 3], np.int32)
    answer = np.array([3, 3, 1], np.intp)
    np.testing.assert_array_equal(counted(truth, answer).counts[[1, 3]][:, [1, 3]], [[0, 1], [1, 1]])
