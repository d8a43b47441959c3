"""Sums that are as sure as their members agree."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.problem import Linear, Result, Status
from core.selection.stack import CoValidated, Member, Stack, co_validate
from core.validation.calibration import SLOPE, Calibration, calibration_at
from tests.there import there

N = 4_000
NO_CLASSES = np.zeros(6, np.intp)
"""of labels left out that say nothing, since all are of one class"""


def sum_and_members(n_classes: int, right: float, size: float) -> tuple[Stack, list[Member], NDArray[np.intp]]:
    """A sum with scores of this ``size``, of a generative member and another that are ``right`` independently, and the
    true classes.
    """
    rng, n_columns = np.random.default_rng(n_classes), 1 if n_classes == 2 else n_classes
    truth = rng.integers(0, n_classes, N)
    members = []
    for generative in (True, False):
        said = np.where(rng.random(N) < right, truth, (truth + 1) % n_classes)
        scores = (
            2.0 * (said[:, None] == np.arange(1 if n_classes == 2 else 0, n_classes))
            - 1
            + 0.1 * rng.standard_normal((N, n_columns))
        )
        members.append(Member(0.5, np.arange(3), results_of(scores), scores[:6], plain(n_classes), generative))
    scores = size * (sum(scores_of(each.results) for each in members) / 2 + 0.3 * rng.standard_normal((N, n_columns)))
    return Stack(results_of(scores), scores[:6]), members, truth


def results_of(scores: NDArray[np.float64]) -> list[Result]:
    return [Result(Linear(np.arange(3.0), 0.5), column.copy(), 1.0, Status.CONVERGED, (), 1.0) for column in scores.T]


def scores_of(results: Any) -> NDArray[np.float64]:
    return np.column_stack([result.unlabeled_scores for result in results])


def plain(n_classes: int) -> Calibration:
    n_columns = 1 if n_classes == 2 else n_classes
    return Calibration(np.full(n_columns, SLOPE), np.zeros(n_columns), np.ones(n_classes))


def validated(
    pooled: Stack, members: list[Member], fractions: NDArray[np.float64], class_indices: NDArray[np.intp] | None = None
) -> CoValidated:
    found = there(
        co_validate(pooled, members, NO_CLASSES if class_indices is None else class_indices, fractions, lambda: None)
    )
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [0.3, 2.0], ids=["unsure", "too-sure"])
def test_a_sum_becomes_half_as_far_from_what_its_members_agree_on(n_classes: int, size: float) -> None:
    pooled, members, truth = sum_and_members(n_classes, 0.8, size)
    fractions = np.bincount(truth, minlength=n_classes) / N
    before = calibration_at(plain(n_classes).slopes, plain(n_classes).offsets, scores_of(pooled.results), fractions)
    sureness = before.probabilities(scores_of(pooled.results)).max(axis=1).mean()
    found = validated(pooled, members, fractions)
    after = plain(n_classes).probabilities(scores_of(found.sum.results))
    assert found.agreement == pytest.approx(0.8**2 + (0.2**2), abs=0.03)
    assert after.max(axis=1).mean() == pytest.approx((found.agreement + sureness) / 2, abs=0.01)


def test_what_agrees_counts_no_more_than_labels_left_out_allow() -> None:
    pooled, members, truth = sum_and_members(2, 0.95, 1.0)
    fractions, known = np.bincount(truth) / N, np.arange(20) % 2
    texts, members = members, [each._replace(dense=True) for each in members]
    means = []
    for n_right in (20, 14, 10):
        held_out = np.where(np.arange(20) < n_right, 2.0, -2.0) * (2.0 * known - 1)
        found = validated(pooled._replace(held_out=held_out[:, None]), members, fractions, known)
        assert found.agreement == pytest.approx(0.905, abs=0.03), "it is told as it is"
        means.append(plain(2).probabilities(scores_of(found.sum.results)).max(axis=1).mean())
    assert (
        validated(pooled._replace(held_out=held_out[:, None]), texts, fractions, known).sum.held_out[0]
        != found.sum.held_out[0]
    )
    unlimited = plain(2).probabilities(scores_of(validated(pooled, members, fractions).sum.results)).max(axis=1).mean()
    assert means[0] == pytest.approx(unlimited)
    assert means[0] > means[1] + 0.05 > means[2] + 0.1


def test_the_limit_is_of_the_unlabeled_documents_and_not_of_the_labels() -> None:
    """Of even labels of uneven classes each class counts by its fraction."""
    pooled, members, _ = sum_and_members(2, 0.99, 3.0)
    members, known = [each._replace(dense=True) for each in members], np.arange(20) % 2
    rare_wrong = np.where((known == 1) & (np.arange(20) < 12), -9.0, 9.0 * (2.0 * known - 1))
    common_wrong = np.where((known == 0) & (np.arange(20) < 12), 9.0, 9.0 * (2.0 * known - 1))
    fractions = np.array([0.9, 0.1])
    sure = [
        plain(2)
        .probabilities(
            scores_of(validated(pooled._replace(held_out=each[:, None]), members, fractions, known).sum.results)
        )
        .max(axis=1)
        .mean()
        for each in (rare_wrong, common_wrong)
    ]
    assert sure[0] > sure[1] + 0.01


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_label_changes(n_classes: int) -> None:
    pooled, members, _ = sum_and_members(n_classes, 0.9, 0.5)
    fractions = np.linspace(1, 2, n_classes) / np.linspace(1, 2, n_classes).sum()
    odds = calibration_at(plain(n_classes).slopes, plain(n_classes).offsets, scores_of(pooled.results), fractions)
    found = validated(pooled, members, fractions)
    after = plain(n_classes).probabilities(scores_of(found.sum.results))
    np.testing.assert_array_equal(after.argmax(axis=1), odds.probabilities(scores_of(pooled.results)).argmax(axis=1))


def test_models_and_held_out_scores_change_as_the_scores_do() -> None:
    pooled, members, _ = sum_and_members(3, 0.7, 0.5)
    found = validated(pooled, members, np.full(3, 1 / 3))
    for column, (before, after) in enumerate(zip(pooled.results, found.sum.results, strict=True)):
        assert isinstance(before.decision, Linear)
        assert isinstance(after.decision, Linear)
        factor = after.decision.coefficients[1] / before.decision.coefficients[1]
        shift = after.decision.intercept / factor - before.decision.intercept
        np.testing.assert_allclose(after.unlabeled_scores, factor * (before.unlabeled_scores + shift))
        np.testing.assert_allclose(found.sum.held_out[:, column], factor * (pooled.held_out[:, column] + shift))


def test_members_of_one_kind_say_nothing() -> None:
    pooled, members, _ = sum_and_members(2, 0.9, 1.0)
    for generative in (True, False):
        alike = [each._replace(generative=generative) for each in members]
        assert co_validate(pooled, alike, NO_CLASSES, np.full(2, 0.5), lambda: None) is None


def test_rows_without_a_score_count_for_nothing() -> None:
    pooled, members, _ = sum_and_members(2, 0.9, 1.0)
    expected = validated(pooled, members, np.full(2, 0.5))
    result = pooled.results[0]
    holed = pooled._replace(
        results=[replace(result, unlabeled_scores=np.append(result.unlabeled_scores, [np.nan, np.inf]))]
    )
    wider = [
        each._replace(
            results=[replace(own, unlabeled_scores=np.append(own.unlabeled_scores, [1.0, 1.0])) for own in each.results]
        )
        for each in members
    ]
    found = validated(holed, wider, np.full(2, 0.5))
    np.testing.assert_allclose(scores_of(found.sum.results)[:N], scores_of(expected.sum.results), rtol=1e-2, atol=1e-2)
    assert (
        co_validate(
            pooled._replace(results=[replace(result, unlabeled_scores=np.full(N, np.nan))]),
            members,
            NO_CLASSES,
            np.full(2, 0.5),
            lambda: None,
        )
        is None
    )
