"""Folds, scales, comparisons, and these by frequent features alone where there are many documents."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import FullRows
from core.engine.runner import Scheduler
from core.options.linear import SvmOptions
from core.problem import Problem
from core.progress import Phase, Span
from core.selection import candidates, stack
from core.selection import data as data_module
from core.selection.data import SelectionData, scale_features, with_frequent_features
from core.selection.held_out import FoldFit, compared_svm
from core.validation.folds import N_FOLDS, folds_of, without
from tests.calls import noted
from tests.core.problems import dense_of, rows_of, small, solve, weights_of
from tests.core.selection.pools import fit, pool, words
from tests.there import there


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


def test_rows_of_norm_one_are_left_as_they_are(rng: np.random.Generator) -> None:
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
def test_rows_that_store_every_feature_are_centred(spread: float, rng: np.random.Generator) -> None:
    """Temperatures around 300 tell as much as shares around 0; a feature that never changes tells nothing."""
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


def data_of(dense: np.ndarray) -> SelectionData:
    return SelectionData.of(rows_of(dense), np.array([0, 1, 2, 0, 1, 2]), ["a", "b", "c"], 3)


def sparse(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(
        rng.random((60, 30)) * (rng.random((60, 30)) < np.linspace(0.02, 0.6, 30)) + 1e-3 * np.eye(60, 30)
    )


def test_few_documents_keep_all_features() -> None:
    data = data_of(sparse())
    assert with_frequent_features(data, nothing) is data


def test_features_of_few_among_many_documents_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_module, "MANY_ROWS", 60)
    monkeypatch.setattr(data_module, "_SHARE", 0.2)
    monkeypatch.setattr(data_module, "_SLICE", 50)  # so that there are several slices
    data = data_of(sparse())
    found, dense = with_frequent_features(data, nothing), dense_of(data.scaled.rows)
    kept = (dense != 0).sum(axis=0) >= 12
    assert 0 < kept.sum() < 30
    np.testing.assert_array_equal(dense_of(found.scaled.rows), dense[:, kept])
    np.testing.assert_array_equal(found.scaled.scales, data.scaled.scales[kept])
    for one, other in zip(found.problems, data.problems, strict=True):
        np.testing.assert_array_equal(one.y, other.y)
        np.testing.assert_array_equal(one.costs, other.costs)
        assert one.rows is found.scaled.rows


def test_the_selected_model_starts_from_the_solution_at_its_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = noted(monkeypatch, candidates, "tsvm", lambda problem, options, start: (problem, start))
    monkeypatch.setattr(stack, "_LEAST_WEIGHT", 0.0)
    monkeypatch.setattr(data_module, "MANY_ROWS", 10)
    monkeypatch.setattr(data_module, "_SHARE", 0.02)
    fit(words(3, [0.5, 0.3, 0.2], n=600, per_class=10))
    starts = [each for each in solved if each[1] is not None]
    assert len(starts) == 3
    for problem, start in starts:
        dense = dense_of(problem.rows)
        rare = (dense != 0).sum(axis=0) < 0.02 * len(dense)
        assert rare.any()
        assert not start[:-1][rare].any()
        scores = dense @ start[:-1] + start[-1]
        positive = problem.y > 0
        assert scores[: problem.n_labeled][positive].mean() > scores[: problem.n_labeled][~positive].mean() + 0.5


def test_of_dense_rows_it_starts_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = noted(monkeypatch, candidates, "tsvm", lambda problem, options, start: start)
    monkeypatch.setattr(stack, "_LEAST_WEIGHT", 0.0)
    fit(pool(0, [0.3, 0.3, 0.4]))
    assert {*map(type, starts)} == {type(None)}


@pytest.mark.parametrize("fractions", [[0.6, 0.4], [0.5, 0.3, 0.2]])
def test_the_selected_model_has_all_features(monkeypatch: pytest.MonkeyPatch, fractions: list[float]) -> None:
    monkeypatch.setattr(data_module, "MANY_ROWS", 10)
    monkeypatch.setattr(data_module, "_SHARE", 0.02)
    data = words(3, fractions, n=600, per_class=10)
    training = fit(data)
    assert there(training.report)["chosen"]["algorithm"] == "naive_bayes"
    rare = np.bincount(data.rows.indices, minlength=data.rows.n_features) < 0.02 * data.rows.n_rows
    assert rare.any()
    assert not rare.all()
    scores = training.model.scores(data.rows)
    np.testing.assert_allclose(scores[training.unlabeled], training.scores, atol=1e-4)
    without = data.rows._replace(values=np.where(rare[data.rows.indices], 0, data.rows.values).astype(np.float32))
    assert np.abs(training.model.scores(without) - scores).max() > 1e-3
