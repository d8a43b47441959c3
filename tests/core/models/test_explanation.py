"""Explanations of a score: contributions that add up to it, against dense arithmetic, for both families."""

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.models.explanation import explain_score, top_weights
from core.models.io import read_model
from core.models.kernel import KernelModel
from core.models.model import LinearModel, Model, Weights
from core.train import TrainingTask, train
from tests.core.problems import dense_of, random_rows, rows_of
from tests.there import there

N_FEATURES, K = 30, 3


def documents(density: float = 0.4) -> tuple[SparseRows, NDArray[np.int32]]:
    """Rows of three classes, some empty, and class indices, some of them -1."""
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 60, N_FEATURES, density)
    truth = np.argmax(dense_of(rows)[:, :K] + 0.1 * rng.standard_normal((60, K)), axis=1)
    return rows, np.where(rng.random(60) < 0.6, truth, -1).astype(np.int32)


@pytest.fixture(params=["svm", "kernel_svm"])
def model(request: pytest.FixtureRequest) -> Model:
    rows, class_indices = documents()
    return train(TrainingTask(rows, class_indices, list("abc"), request.param, {})).model


def strangers() -> SparseRows:
    """Documents with some features that were never seen, with an empty one, as a view into larger arrays."""
    rng = np.random.default_rng(1)
    dense = rng.standard_normal((12, N_FEATURES + 7)) * (rng.random((12, N_FEATURES + 7)) < 0.3)
    dense[5] = 0.0
    return rows_of(dense).between(3, 10)


@pytest.mark.parametrize("n", [0, 1, 4, 1000])
def test_contributions_and_rest_add_up_to_the_score(model: Model, n: int) -> None:
    rows = strangers()
    for place in range(rows.n_rows):
        row = rows.between(place, place + 1)
        scores = model.scores(row)[0]
        for column in range(K):
            found = explain_score(model, row, column, n)
            assert len(found.contributions.items) <= n
            assert found.score == pytest.approx(scores[column], rel=1e-12, abs=1e-12)
            assert found.contributions.intercept + found.contributions.amounts.sum() + found.rest == pytest.approx(
                found.score, rel=1e-12, abs=1e-12
            )
            if n == 1000:
                assert found.rest == 0.0


def test_contributions_of_a_linear_model_are_its_coefficients_on_the_documents_values() -> None:
    rows, class_indices = documents()
    model = train(TrainingTask(rows, class_indices, list("abc"), "svm", {})).model
    assert isinstance(model, LinearModel)
    asked = strangers()
    dense = dense_of(asked)[:, : rows.n_features]
    full = np.zeros((rows.n_features, K))
    full[model.features] = model.coefficients
    for place in range(asked.n_rows):
        products = dense[place] * full[:, 1]
        contributions = explain_score(model, asked.between(place, place + 1), 1, 5).contributions
        expected = [feature for feature in np.argsort(-np.abs(products), kind="stable") if products[feature] != 0][:5]
        assert contributions.items.tolist() == expected
        np.testing.assert_array_equal(contributions.values, dense[place, expected])
        np.testing.assert_array_equal(contributions.weights, full[expected, 1])


def test_contributions_of_a_kernel_model_are_its_rows_the_nearest_first() -> None:
    rows, class_indices = documents()
    model = train(TrainingTask(rows, class_indices, list("abc"), "kernel_svm", {"gamma": 0.05})).model
    assert isinstance(model, KernelModel)
    asked, kept = strangers(), dense_of(rows)[there(model.positions)]
    dense = dense_of(asked)[:, : rows.n_features]
    for place in range(asked.n_rows):
        values = np.exp(-0.05 * ((kept - dense[place]) ** 2).sum(axis=1))
        contributions = explain_score(model, asked.between(place, place + 1), 2, 6).contributions
        assert np.all(np.diff(contributions.values) <= 0)
        used = np.flatnonzero(model.weights[:, 2])
        np.testing.assert_allclose(contributions.values, np.sort(values[used])[::-1][:6], atol=1e-6)
        np.testing.assert_allclose(contributions.values, values[contributions.items], atol=1e-6)
        np.testing.assert_array_equal(contributions.weights, model.weights[contributions.items, 2])


@pytest.mark.parametrize("algorithm", ["kernel_svm", "ramp_svm", "cccp_tsvm"])
def test_a_kernel_model_knows_where_its_rows_come_from(algorithm: str) -> None:
    """Labeled and unlabeled documents are mixed, so that positions differ from training's own copy; and they survive
    storing.
    """
    rows, class_indices = documents()
    model = train(TrainingTask(rows, class_indices, list("abc"), algorithm, {})).model
    arrays, meta = model.to_arrays()
    again = read_model(arrays, meta)
    assert isinstance(again, KernelModel)
    assert again.positions is not None
    assert len(set(again.positions.tolist())) == again.support.n_rows
    kept = np.zeros((again.support.n_rows, rows.n_features))
    kept[:, again.features] = dense_of(again.support)
    np.testing.assert_array_equal(kept, dense_of(rows)[again.positions])
    if algorithm == "kernel_svm":
        assert np.all(class_indices[again.positions] >= 0)


def test_models_from_before_positions_were_kept_are_read() -> None:
    rows, class_indices = documents()
    arrays, meta = train(TrainingTask(rows, class_indices, list("abc"), "kernel_svm", {})).model.to_arrays()
    del arrays["positions"]
    again = read_model(arrays, meta)
    assert isinstance(again, KernelModel)
    assert again.positions is None
    assert explain_score(again, rows.between(0, 1), 0, 3).score == pytest.approx(again.scores(rows.between(0, 1))[0, 0])


@pytest.mark.parametrize("n", [0, 1, 3, 10, 50])
def test_the_heaviest_are_those_of_a_full_sort(n: int) -> None:
    rng = np.random.default_rng(2)
    weights = np.round(rng.standard_normal(40), 1)  # with equals and zeros among them
    found = Weights(np.arange(100, 140), weights, 0.5)
    raising, lowering = top_weights(found, n)
    up = sorted(
        (weight, item) for item, weight in zip(found.items.tolist(), weights.tolist(), strict=True) if weight > 0
    )
    down = sorted(
        (-weight, item) for item, weight in zip(found.items.tolist(), weights.tolist(), strict=True) if weight < 0
    )
    for got, expected in ((raising, up), (lowering, down)):
        expected.sort(key=lambda pair: (-pair[0], pair[1]))
        assert got.items.tolist() == [item for _, item in expected[:n]]
        np.testing.assert_array_equal(np.abs(got.weights), [weight for weight, _ in expected[:n]])
        assert got.intercept == 0.5


def test_the_heaviest_of_a_model(model: Model) -> None:
    for column in range(K):
        found = model.weights_of(column)
        raising, lowering = top_weights(found, 1)
        assert raising.weights.tolist() == [found.weights.max()]
        assert lowering.weights.tolist() == [found.weights.min()]


def test_a_model_of_no_feature_is_its_intercept() -> None:
    model = LinearModel(["a", "b"], 0, np.zeros(0, np.uint32), np.zeros((0, 1)), np.array([0.25]))
    found = explain_score(model, rows_of(np.ones((1, 3))), 0, 5)
    assert (found.score, found.rest, len(found.contributions.items)) == (0.25, 0.0, 0)
    assert [len(part.items) for part in top_weights(model.weights_of(0), 5)] == [0, 0]
