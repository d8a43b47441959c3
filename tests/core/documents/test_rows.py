"""The checks of sparse rows against plain Python on the same rows; rows that store every feature."""

import itertools
import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.reorder import compact, gathered
from core.documents.rows import (
    FullRows,
    SparseRows,
    find_faults,
    full_is_smaller,
    is_faultless,
    layout_fault,
    sorted_rows,
    without_zeros,
)
from core.documents.value_scale import value_scale
from core.errors import Fault
from core.selection.data import scale_features
from tests.core.problems import dense_of, random_rows
from tests.stores import rows
from tests.there import there

cells = st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 1.0, -2.5])), max_size=6)
matrices = st.tuples(st.lists(cells, max_size=6), st.integers(0, 2))


def build(lists: list[list[tuple[int, float]]], n_features: int = 10) -> SparseRows:
    indptr = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    flat = [cell for row in lists for cell in row]
    return SparseRows(
        indptr, np.array([i for i, _ in flat], np.uint32), np.array([v for _, v in flat], np.float32), n_features
    )


def as_lists(matrix: SparseRows) -> list[list[tuple[int, float]]]:
    bounds = matrix.indptr.tolist()
    return [
        list(zip(matrix.indices[a:b].tolist(), matrix.values[a:b].tolist(), strict=True))
        for a, b in itertools.pairwise(bounds)
    ]


@given(matrices)
def test_sorting_sorts_each_row_and_keeps_each_value(drawn: tuple[list[list[tuple[int, float]]], int]) -> None:
    lists, skip = drawn
    whole = build(lists)
    part = whole.between(min(skip, whole.n_rows), whole.n_rows)
    done = as_lists(sorted_rows(part))
    assert [[i for i, _ in row] for row in done] == [sorted(i for i, _ in row) for row in lists[skip:]]
    assert [sorted(row) for row in done] == [sorted(row) for row in lists[skip:]]
    assert as_lists(whole) == lists


@given(matrices)
def test_zeros_are_dropped(drawn: tuple[list[list[tuple[int, float]]], int]) -> None:
    lists, skip = drawn
    whole = build(lists)
    part = whole.between(min(skip, whole.n_rows), whole.n_rows)
    assert as_lists(without_zeros(part)) == [[cell for cell in row if cell[1]] for row in lists[skip:]]


@given(matrices)
def test_repetitions_are_found_in_sorted_rows(drawn: tuple[list[list[tuple[int, float]]], int]) -> None:
    lists, _ = drawn
    faults = find_faults(sorted_rows(build(lists)))
    expected = {place for place, row in enumerate(lists) if len({i for i, _ in row}) < len(row)}
    assert {fault.document for fault in faults} == expected
    assert all(fault.field == "indices" for fault in faults)


@given(matrices, st.integers(0, 10), st.sampled_from([1.0, np.inf, np.nan]))
def test_rows_are_faultless_where_no_fault_is_found(
    drawn: tuple[list[list[tuple[int, float]]], int], n_features: int, value: float
) -> None:
    lists, skip = drawn
    whole = build(lists, n_features)
    whole.values[-1:] = value
    for matrix in (part := whole.between(min(skip, whole.n_rows), whole.n_rows), sorted_rows(part)):
        assert is_faultless(matrix) == (find_faults(matrix) == [])


def test_rows_in_order_are_not_copied() -> None:
    matrix = rows({1: 1, 2: 1}, {}, {0: 1})
    assert sorted_rows(matrix) is matrix
    assert without_zeros(matrix) is matrix
    assert find_faults(matrix) == []


def test_each_fault_names_row_field_and_index() -> None:
    matrix = rows({3: 1, 5: float("nan")}, {}, {7: 1, 12: float("inf")}, n_features=10)
    assert find_faults(matrix) == [
        Fault(0, "values", "the value of index 5 is not a finite number, or beyond 3.4e38, the largest of float32"),
        Fault(2, "indices", "index 12 is not below the 10 features"),
        Fault(2, "values", "the value of index 12 is not a finite number, or beyond 3.4e38, the largest of float32"),
    ]
    assert find_faults(rows({3: 1, 2: 1})) == [Fault(0, "indices", "index 2 comes after 3: indices must ascend")]
    twice = SparseRows(np.array([0, 2]), np.array([4, 4], np.uint32), np.ones(2, np.float32), 5)
    assert find_faults(twice) == [Fault(0, "indices", "index 4 is repeated")]


def test_faults_are_bounded() -> None:
    matrix = rows(*[{0: float("nan")}] * 50)
    assert [fault.document for fault in find_faults(matrix)] == [*range(20)]
    assert len(find_faults(matrix, limit=3)) == 3


@pytest.mark.parametrize(
    ("indptr", "n_indices", "n_values", "n_features", "field"),
    [
        ([0, 2, 1], 2, 2, 5, "indptr"),
        ([0, 3], 2, 2, 5, "indptr"),
        ([-1, 1], 1, 1, 5, "indptr"),
        ([], 0, 0, 5, "indptr"),
        ([0, 1], 1, 2, 5, "values"),
        ([0, 1], 1, 1, 2**31 + 1, "indices"),
    ],
)
def test_arrays_that_do_not_fit(indptr: list[int], n_indices: int, n_values: int, n_features: int, field: str) -> None:
    matrix = SparseRows(
        np.array(indptr, np.int64), np.zeros(n_indices, np.uint32), np.ones(n_values, np.float32), n_features
    )
    found = there(layout_fault(matrix))
    assert found.field == field
    assert find_faults(matrix) == [found]
    assert not is_faultless(matrix)


def test_checking_takes_no_python_by_the_document() -> None:
    """A thousand documents take as many instructions of the interpreter as ten; fails when anything is done row by row
    in Python.
    """

    def instructions(n: int) -> int:
        indices = np.cumsum(np.random.default_rng(0).integers(1, 100, (n, 76)), axis=1).astype(np.uint32)
        matrix = SparseRows(np.arange(0, n * 76 + 1, 76), indices.ravel(), np.ones(n * 76, np.float32), 10_000)
        counted: list[str] = []

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            frame.f_trace_opcodes = True
            counted.append(event)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            unchanged, faults = sorted_rows(matrix) is matrix, find_faults(matrix)
        finally:
            sys.settrace(before)
        assert unchanged
        assert faults == []
        return len(counted)

    assert 100 < instructions(1000) == instructions(10)


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
