"""A model on the way out of training and back: scores against dense arithmetic, unseen features, arrays that carry all
of it.
"""

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.models import model as module
from core.models.io import read_model
from core.models.model import LinearModel
from tests.core.problems import dense_of, random_rows, rows_of


def made(n_features: int = 12, columns: int = 1, seed: int = 0) -> LinearModel:
    rng = np.random.default_rng(seed)
    features = np.sort(rng.choice(12, 7, replace=False)).astype(np.uint32) + np.uint32(n_features - 12)
    classes = ["a", "b"] if columns == 1 else [f"c{k}" for k in range(columns)]
    return LinearModel(classes, n_features, features, rng.standard_normal((7, columns)), rng.standard_normal(columns))


def dense_scores(model: LinearModel, rows: SparseRows) -> NDArray[np.float64]:
    """For models with features that end at 12."""
    full = np.zeros((rows.n_features, model.coefficients.shape[1]))
    kept = model.features < rows.n_features
    full[model.features[kept]] = model.coefficients[kept]
    return np.asarray(dense_of(rows) @ full + model.intercepts)


@pytest.mark.parametrize("columns", [1, 3, 20])
@pytest.mark.parametrize("chunk", [1, 50, 1 << 20])
@pytest.mark.parametrize("width", [5, 12, 40])
def test_scores_are_dense_products(monkeypatch: pytest.MonkeyPatch, columns: int, chunk: int, width: int) -> None:
    """Of rows with fewer, as many and more features than in training; empty rows and views among them; in any number of
    chunks.
    """
    monkeypatch.setattr(module, "_CHUNK", chunk)
    rows = random_rows(np.random.default_rng(1), 50, width, 0.4)
    model = made(columns=columns)
    np.testing.assert_allclose(model.scores(rows), dense_scores(model, rows), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        model.scores(rows.between(9, 33)), dense_scores(model, rows)[9:33], rtol=1e-12, atol=1e-12
    )
    assert model.scores(rows.between(4, 4)).shape == (0, columns)


def test_all_rows_empty() -> None:
    model, rows = made(columns=3), rows_of(np.zeros((4, 12)))
    np.testing.assert_array_equal(model.scores(rows), np.tile(model.intercepts, (4, 1)))
    assert model.scores_and_unseen(rows)[1] == 0


@pytest.mark.parametrize(("n_features", "nbytes"), [(2**22, 4 * 2**22 + 1000), (2**31, 1000)])
def test_the_search_and_the_tables_find_the_same(n_features: int, nbytes: int) -> None:
    """Where a table of coefficients by feature would be too large, one of positions is taken; where that would be too,
    they are searched for.
    """
    near, far = made(12, 3), made(n_features, 3)
    rows = random_rows(np.random.default_rng(2), 40, 12, 0.5)
    moved = rows._replace(indices=rows.indices + np.uint32(n_features - 12), n_features=n_features)
    np.testing.assert_array_equal(far.scores(moved), near.scores(rows))
    assert far.scores_and_unseen(moved)[1] == near.scores_and_unseen(rows)[1] > 0
    assert far.nbytes < nbytes
    below = moved._replace(indices=rows.indices)
    np.testing.assert_array_equal(far.scores(below), np.tile(far.intercepts, (40, 1)))
    assert far.scores_and_unseen(below)[1] == rows.n_nonzeros


@pytest.mark.parametrize("model", [made(), replace(made(), coefficients=np.arange(7.0)[:, None])])
def test_unseen_counts_nonzeros_in_gaps_and_beyond(model: LinearModel) -> None:
    """Also where a feature that training saw has a coefficient of 0, as those have that it did not see."""
    rows = random_rows(np.random.default_rng(3), 50, 40, 0.4)
    for part in (rows, rows.between(10, 20)):
        used = part.indices[part.indptr[0] : part.indptr[-1]]
        assert model.scores_and_unseen(part)[1] == np.count_nonzero(~np.isin(used, model.features)) > 0


@pytest.mark.parametrize("columns", [1, 3])
def test_arrays_carry_all_of_it(columns: int) -> None:
    """Through bytes and JSON, as storage does it."""
    model = made(columns=columns)
    arrays, meta = model.to_arrays()
    stored = io.BytesIO()
    np.savez(stored, allow_pickle=False, **arrays)
    stored.seek(0)
    with np.load(stored, allow_pickle=False) as loaded:
        again = read_model(dict(loaded), json.loads(json.dumps(meta)))
    assert list(again.classes) == list(model.classes)
    assert again.n_features == model.n_features
    rows = random_rows(np.random.default_rng(4), 30, 20, 0.4)
    np.testing.assert_array_equal(again.scores(rows), model.scores(rows))
    assert again.scores_and_unseen(rows)[1] == model.scores_and_unseen(rows)[1]


@pytest.mark.parametrize("classes", [["x", "y"], [0, 1], [-5, 3]])
def test_labels_keep_their_type(classes: list[Any]) -> None:
    model = LinearModel(classes, 1, np.zeros(1, np.uint32), np.ones((1, 1)), np.zeros(1))
    meta = json.loads(json.dumps(model.to_arrays()[1]))
    assert read_model(model.to_arrays()[0], meta).classes == classes


def test_labels_of_scores() -> None:
    two, three = made(), made(columns=3)
    assert two.labels_of(np.array([[-1.0], [0.0], [1e-300]])).tolist() == [0, 0, 1]
    assert three.labels_of(np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 1.0], [-3.0, -1.0, -2.0]])).tolist() == [2, 0, 1]


def test_an_uncalibrated_model_claims_no_probabilities() -> None:
    assert made().probabilities(np.zeros((2, 1))) is None


def test_size_counts_the_arrays() -> None:
    model = made(columns=3)
    assert model.nbytes >= model.features.nbytes + model.coefficients.nbytes + model.intercepts.nbytes
