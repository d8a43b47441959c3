"""The scale of values beside NumPy, and the warnings about it."""

import numpy as np
import pytest

from core.documents import value_scale as module
from core.documents.rows import FullRows
from core.documents.value_scale import value_scale
from core.errors import MessageNames
from tests.core.problems import Array, dense_of, random_rows, rows_of
from tests.there import there


def ask() -> None:
    """A checkpoint that does nothing."""


def plain(seed: int = 0, n: int = 60) -> Array:
    return dense_of(random_rows(np.random.default_rng(seed), n, 5, 0.8))


@pytest.mark.parametrize("slice_size", [1, 7, 1 << 21])
def test_it_is_that_of_numpy(monkeypatch: pytest.MonkeyPatch, slice_size: int) -> None:
    monkeypatch.setattr(module, "_SLICE", slice_size)
    dense = plain()
    scale = value_scale(rows_of(dense), ask)
    lengths, squares = np.linalg.norm(dense, axis=1), (dense**2).sum(axis=0)
    assert scale.length == pytest.approx(np.median(lengths[lengths > 0]))
    assert scale.largest == pytest.approx(np.abs(dense).max())
    assert [scale.row, scale.column] == [int(place) for place in np.unravel_index(np.abs(dense).argmax(), dense.shape)]
    others = squares.sum() - squares[scale.column]
    assert scale.dominance == pytest.approx(np.sqrt(squares[scale.column] / others))
    assert not scale.dominated
    assert scale.remedy(MessageNames()) is None


def test_a_part_of_a_matrix_has_a_scale_of_its_own() -> None:
    dense = plain()
    assert value_scale(rows_of(dense).between(10, 30), ask) == value_scale(rows_of(dense[10:30]), ask)


@pytest.mark.parametrize("n_features", [3, 8, 21])
def test_rows_that_store_every_feature_have_the_same(n_features: int) -> None:
    dense = np.random.default_rng(3).standard_normal((50, n_features)).astype(np.float32)
    dense[17, n_features - 1] = -9.0
    full, scale = value_scale(FullRows.of(dense).between(10, 40), ask), value_scale(rows_of(dense[10:40]), ask)
    assert (full.row, full.column, full.largest) == (scale.row, scale.column, scale.largest) == (7, n_features - 1, 9.0)
    np.testing.assert_allclose(full, scale, rtol=1e-12)
    dense[:, 1] *= 1e6
    np.testing.assert_allclose(value_scale(FullRows.of(dense), ask), value_scale(rows_of(dense), ask), rtol=1e-12)


def test_documents_without_values_have_none() -> None:
    scale = value_scale(rows_of(np.zeros((3, 2))), ask)
    assert (scale.length, scale.largest, scale.dominated, scale.remedy(MessageNames())) == (0.0, 0.0, False, None)


@pytest.mark.parametrize(
    ("factor", "said"), [(1e7, "divide all values by 1e+07"), (2e-5, "multiply all values by 5e+04")]
)
def test_unusual_lengths_come_with_the_factor_that_makes_them_usual(factor: float, said: str) -> None:
    dense = np.full((9, 4), 0.5)
    remedy = there(value_scale(rows_of(dense * factor), ask).remedy(MessageNames()))
    assert remedy.endswith(said)


def test_a_feature_that_outweighs_the_others_is_named() -> None:
    dense = np.column_stack([plain(), np.full(60, 4e18)])
    dense[17, 5] = 5e18
    scale = value_scale(rows_of(dense), ask)
    assert (scale.dominated, scale.n_outweighing, scale.row, scale.column) == (True, 60, 17, 5)
    lengths = np.linalg.norm(dense[:, :5], axis=1)
    assert scale.length == pytest.approx(np.median(lengths[lengths > 0]))
    remedy = there(scale.remedy(MessageNames(lambda row: f"d{row}", lambda column: f"f{column}")))
    assert remedy.startswith("feature 'f5' outweighs all others together")
    assert "up to 5.0e+18 (document 'd17'): leave it out, or divide its values by" in remedy


@pytest.mark.parametrize(
    ("rows", "said"),
    [([3], "document '3' has values up to 4.0e+18 of feature 2"), ([3, 8], "document '3' and 1 more have")],
)
def test_few_documents_of_huge_values_are_named_instead(rows: list[int], said: str) -> None:
    dense = plain(n=200)
    dense[rows, 2] = 4e18
    scale = value_scale(rows_of(dense), ask)
    assert scale.n_outweighing == len(rows)
    remedy = there(scale.remedy(MessageNames()))
    assert remedy.startswith(said)
    assert remedy.endswith("correct them, or leave them out")


def test_a_single_feature_outweighs_nothing() -> None:
    assert not value_scale(rows_of(np.full((5, 1), 4e18)), ask).dominated
