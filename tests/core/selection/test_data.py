"""Folds, scales, comparisons."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import FullRows
from core.engine.runner import Scheduler
from core.options.linear import SvmOptions
from core.problem import Problem
from core.progress import Phase, Span
from core.selection.data import SelectionData, scale_features
from core.selection.held_out import FoldFit, compared_svm
from core.validation.folds import N_FOLDS, folds_of, without
from tests.core.problems import dense_of, rows_of, small, solve, weights_of


def nothing() -> None:
    pass


@pytest.mark.parametrize("seed", range(5))
def test_every_class_is_spread_over_the_folds(seed: int) -> None:
    class_indices = np.repeat([0, 1, 2, 3], [7, 3, 1, 10])
    folds = folds_of(class_indices, seed)
    assert folds[class_indices == 2].tolist() == [-1]
    for class_index in (0, 1, 3):
        counts = np.bincount(folds[class_indices == class_index], minlength=N_FOLDS)
        assert counts.max() - counts.min() <= 1
    sizes = np.bincount(folds[folds >= 0], minlength=N_FOLDS)
    assert sizes.max() - sizes.min() <= 1
    assert not np.array_equal(folds, folds_of(class_indices, seed + 10))


def test_a_label_left_out_is_as_good_as_unknown() -> None:
    data = small(3, labeled=10)
    hidden = np.arange(10) >= 8
    result = solve("svm", without(data.problem, hidden), SvmOptions(lambda_=0.01, tolerance=1e-12))
    alone = solve("svm", Problem.of(data.rows, data.y[:8]), SvmOptions(lambda_=0.01, tolerance=1e-12))
    np.testing.assert_allclose(weights_of(result), weights_of(alone), atol=1e-6)
    run = FoldFit()
    with Scheduler(data.rows, threads=1) as scheduler:
        scheduler.run({Phase(): lambda: run.steps(data.problem, hidden, partial(compared_svm, lambda_=0.01))})
    np.testing.assert_allclose(run.labeled, data.X[:10] @ weights_of(alone), atol=1e-6)


def test_rows_of_norm_one_are_left_as_they_are() -> None:
    rng = np.random.default_rng(0)
    dense = rng.random((30, 40)) * (rng.random((30, 40)) < 0.2) + 1e-3
    rows = rows_of(dense / np.linalg.norm(dense, axis=1, keepdims=True))
    assert scale_features(rows, nothing).rows is rows


def test_other_rows_get_one_scale() -> None:
    rows = rows_of(30 * np.random.default_rng(0).standard_normal((50, 20)))
    ready = scale_features(rows, nothing)
    assert not ready.equalised
    assert len(np.unique(ready.scales)) == 1
    assert (dense_of(ready.rows) ** 2).sum(axis=1).mean() == pytest.approx(1, rel=1e-4)
    np.testing.assert_allclose(dense_of(ready.rows), dense_of(rows) * ready.scales, rtol=1e-6)


def test_a_feature_that_drowns_the_others_is_brought_down() -> None:
    dense = np.random.default_rng(0).standard_normal((200, 20))
    dense[:, 7] *= 1e4
    dense[:, 9] = 0.0
    ready = scale_features(rows_of(dense), nothing)
    assert ready.equalised
    energies = (dense_of(ready.rows) ** 2).mean(axis=0)
    np.testing.assert_allclose(np.delete(energies, 9), 1 / 19, rtol=1e-4)
    assert ready.scales[9] == 0


def test_a_number_beside_terms_leaves_them_their_proportions() -> None:
    """Lengths of texts beside TF-IDF: divided by root mean squares, rare terms would outweigh all others."""
    rng = np.random.default_rng(1)
    dense = rng.random((200, 80)) * (rng.random((200, 80)) < np.linspace(0.01, 0.1, 80))
    dense[:, 7] = 0
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-9)
    dense[:, 7] = rng.integers(100, 5000, 200)
    ready = scale_features(rows_of(dense), nothing)
    assert not ready.equalised
    assert len(np.unique(np.delete(ready.scales, 7))) == 1
    energies = (dense_of(ready.rows) ** 2).mean(axis=0)
    assert energies[7] == pytest.approx(np.delete(energies, 7).max(), rel=1e-4)
    assert energies.sum() == pytest.approx(1, rel=1e-4)


def test_a_few_features_that_hardly_a_row_has_are_brought_to_one_scale() -> None:
    """There are no terms beside them."""
    dense = np.zeros((100, 3))
    dense[:6] = np.repeat(np.diag([0.5, 2.0, 9.0]), 2, axis=0)
    ready = scale_features(rows_of(dense), nothing)
    assert ready.equalised


def full(matrix: NDArray[np.float64]) -> FullRows:
    return FullRows.of(np.ascontiguousarray(matrix, np.float32))


@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_rows_that_store_every_feature_are_centred(spread: float) -> None:
    """Temperatures around 300 tell as much as shares around 0; a feature that never changes tells nothing."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((200, 12)) * np.where(np.arange(12) == 3, spread, 1.0) + np.where(
        np.arange(12) < 6, 300.0, 0.0
    )
    dense[:, 9] = 7.0
    ready = scale_features(full(dense), nothing)
    assert ready.equalised == (spread > 1)
    found = dense_of(ready.rows)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-5)
    assert (found**2).sum(axis=1).mean() == pytest.approx(1, rel=1e-3)
    np.testing.assert_allclose(found, (dense - ready.centre) * ready.scales, atol=1e-4)
    if spread > 1:
        np.testing.assert_allclose(np.delete((found**2).mean(axis=0), 9), 1 / 11, rtol=1e-3)
    np.testing.assert_allclose(found[:, 9], 0, atol=1e-6)


def test_rows_that_are_all_the_same_are_left_as_they_are() -> None:
    ready = scale_features(full(np.full((5, 3), 7.0)), nothing)
    assert np.all(dense_of(ready.rows) == 7)
    assert ready.scales.tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [0.0, 1e30, 1e-30])
def test_extreme_values_have_a_scale(value: float) -> None:
    ready = scale_features(rows_of(np.full((3, 2), value)), nothing)
    assert np.isfinite(ready.rows.values).all()
    assert np.isfinite(ready.scales).all()


def test_a_part_of_a_part_ends_where_the_next_begins_whatever_is_rounded() -> None:
    first, second = Span(0.05, 0.85).between(0.0, 0.05), Span(0.05, 0.85).between(0.05, 1.0)
    assert first.position(0.0) == 0.05
    assert first.position(1.0) <= second.position(0.0) == pytest.approx(0.09)
    assert second.position(0.5) == pytest.approx(0.47)
    assert second.position(1.0) == 0.85


def test_labels_beyond_those_of_the_class_with_the_fewest_are_surplus() -> None:
    rows = rows_of(np.ones((20, 1)))
    of_four = SelectionData.of(rows, np.array([0, 0, 1, 0, 1, 2, 2, 1, 0, 0, 2]), ["a", "b", "c"], 0)
    assert np.flatnonzero(of_four.surplus).tolist() == [8, 9]
    too_few = SelectionData.of(rows, np.array([0, 0, 1, 0, 1, 2, 2, 1]), ["a", "b", "c"], 0)
    assert not too_few.surplus.any()
