"""Comparison of methods by frequent features alone, where there are many documents."""

import numpy as np
import pytest

from core.selection import candidates, stack
from core.selection import data as data_module
from core.selection.data import SelectionData, with_frequent_features
from tests.calls import noted
from tests.core.problems import dense_of, rows_of
from tests.core.selection.methods.test_naive_bayes import words
from tests.core.selection.test_auto import fit, pool
from tests.there import there


def nothing() -> None:
    pass


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
