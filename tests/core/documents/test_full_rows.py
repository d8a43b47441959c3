"""Dense documents as rows that store every feature: the same matrix, in half the memory."""

import numpy as np
import pytest

from core.documents.reorder import compact, gathered
from core.documents.rows import FullRows, SparseRows, full_is_smaller
from core.documents.value_scale import value_scale
from core.selection.data import scale_features
from tests.core.problems import dense_of, random_rows


def matrix(n_rows: int = 30, n_features: int = 7, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal((n_rows, n_features)).astype(np.float32)


def sparse_of(rows: SparseRows) -> SparseRows:
    return SparseRows(*rows.csr, rows.n_features)


def test_they_are_the_rows_of_a_matrix() -> None:
    X = matrix()
    rows = FullRows.of(X)
    assert (rows.n_rows, rows.n_nonzeros, rows.n_features) == (30, 210, 7)
    np.testing.assert_array_equal(dense_of(sparse_of(rows)), X)
    view = rows.between(3, 9)
    np.testing.assert_array_equal(view.matrix, X[3:9])
    np.testing.assert_array_equal(view.taken(np.array([4, 0])).values, X[[7, 3]].reshape(-1))
    assert np.shares_memory(view.indices, rows.indices)
    for start, stop in ((0, 210), (5, 6), (13, 22), (30, 30)):
        np.testing.assert_array_equal(rows.columns(start, stop), rows.indices[start:stop])


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize(("density", "full"), [(1.0, True), (0.8, True), (0.2, False)])
def test_a_training_stores_dense_where_that_is_smaller(start: int, density: float, full: bool) -> None:
    rows = random_rows(np.random.default_rng(1), 40, 9, density=density).between(start, 40)
    order = np.random.default_rng(2).permutation(rows.n_rows)
    done = compact(rows, order, lambda: None)
    assert isinstance(done.rows, FullRows) is full is full_is_smaller(rows.n_rows, rows.n_nonzeros, len(done.features))
    np.testing.assert_array_equal(dense_of(sparse_of(done.rows)), dense_of(rows)[order][:, done.features])
    again = gathered(done.rows, np.array([3, 1, 3]))
    assert isinstance(again, FullRows) is full
    np.testing.assert_array_equal(dense_of(sparse_of(again)), dense_of(sparse_of(done.rows))[[3, 1, 3]])


def test_no_index_is_made_on_the_way_to_a_linear_model() -> None:
    rows = FullRows.of(matrix(200, 9))
    plain = sparse_of(FullRows.of(matrix(200, 9)))
    assert value_scale(rows, lambda: None) == value_scale(plain, lambda: None)
    scale_features(rows, lambda: None)
    scaled, expected = scale_features(rows, lambda: None, centred=False), scale_features(plain, lambda: None)
    assert isinstance(scaled.rows, FullRows)
    np.testing.assert_array_equal(scaled.rows.values, expected.rows.values)
    assert rows[1]._array is None  # type: ignore[attr-defined]


def test_the_scale_of_one_feature_that_outweighs_all_others() -> None:
    X = matrix(200, 9)
    X[:, 4] *= 1e7
    rows = FullRows.of(X)
    scale = value_scale(rows, lambda: None)
    assert scale == value_scale(sparse_of(rows), lambda: None)
    assert (scale.column, scale.dominated) == (4, True)
