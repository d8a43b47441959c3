"""The sparse loops against dense NumPy: empty rows, views, several threads, several slices."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core import kernels, sweeps
from core.columns import compact
from core.result import Result, Status
from core.rows import SparseRows
from core.sweeps import Adjoint, Product, Request, Scores, Sweeper
from tests.core.problems import Array, dense_of, random_rows, with_bias

CASES = [pytest.param(0, 30, id="whole"), pytest.param(7, 23, id="view"), pytest.param(5, 5, id="no-rows")]


@pytest.fixture
def whole() -> SparseRows:
    rows = random_rows(np.random.default_rng(0), 30, 9)
    assert (np.diff(rows.indptr) == 0).any(), "the fixture has empty rows"
    return rows


@pytest.mark.parametrize(("start", "stop"), CASES)
def test_product_is_two_dense_products(whole: SparseRows, start: int, stop: int) -> None:
    rng = np.random.default_rng(1)
    vector, weights = rng.standard_normal(10), rng.random(30) * (rng.random(30) < 0.7)
    scores, out = np.full(30, np.nan), rng.standard_normal(10)
    before = out.copy()
    kernels.product_rows(*whole[:3], start, stop, vector, weights, scores, out)
    X = with_bias(dense_of(whole))
    read = (np.arange(30) >= start) & (np.arange(30) < stop) & (weights != 0)
    np.testing.assert_allclose(scores[read], (X @ vector)[read], rtol=1e-13)
    assert np.isnan(scores[~read]).all()
    np.testing.assert_allclose(out, before + X.T @ np.where(read, weights * (X @ vector), 0), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("start", "stop"), CASES)
def test_scores_are_a_dense_product_where_not_skipped(whole: SparseRows, start: int, stop: int) -> None:
    rng = np.random.default_rng(2)
    vector, skipped, scores = rng.standard_normal(10), (rng.random(30) < 0.4).astype(float), np.full(30, np.nan)
    kernels.score_rows(*whole[:3], start, stop, vector, skipped, scores)
    read = (np.arange(30) >= start) & (np.arange(30) < stop) & (skipped == 0)
    np.testing.assert_allclose(scores[read], (with_bias(dense_of(whole)) @ vector)[read], rtol=1e-13)
    assert np.isnan(scores[~read]).all()


@pytest.mark.parametrize(("start", "stop"), CASES)
def test_adjoint_adds_a_dense_product(whole: SparseRows, start: int, stop: int) -> None:
    rng = np.random.default_rng(3)
    weights, out = rng.standard_normal(30) * (rng.random(30) < 0.7), rng.standard_normal(10)
    before = out.copy()
    kernels.adjoint_rows(*whole[:3], start, stop, weights, out)
    read = (np.arange(30) >= start) & (np.arange(30) < stop)
    np.testing.assert_allclose(out, before + with_bias(dense_of(whole)).T @ np.where(read, weights, 0), rtol=1e-12, atol=1e-13)


def test_the_largest_column_is_read_as_an_unsigned_number() -> None:
    """Where a signed 32-bit index would wrap around, only the kernels that take no vector of that length can be tried: gathering and counting."""
    top = np.array([2**32 - 1], np.uint32)
    out = np.zeros(1, np.uint32)
    column_of = np.arange(3, dtype=np.uint32)
    column_of[2] = top[0]
    indptr, value = np.array([0, 1]), np.ones(1, np.float32)
    kernels.gather_rows(indptr, np.array([2], np.uint32), value, np.zeros(1, np.int64), column_of, 0, 1, indptr, out, value.copy())
    assert out[0] == 2**32 - 1


@pytest.mark.parametrize("start", [0, 11])
@pytest.mark.parametrize("n_features", [9, 2**31])
def test_compact_reorders_rows_and_drops_empty_columns(whole: SparseRows, start: int, n_features: int) -> None:
    """Once through a table of all columns, once by sorting: the second where the table would need 16 GB."""
    indices = whole.indices.copy()
    indices[indices == 4] = 5 if n_features == 9 else n_features - 1
    rows = whole._replace(indices=indices, n_features=n_features).between(start, 30)
    order = np.random.default_rng(4).permutation(rows.n_rows)
    done = compact(rows, order)
    assert done.rows.n_features == len(done.features) == len(np.unique(indices[rows.indptr[0] : rows.indptr[-1]]))
    assert 4 not in done.features
    for new, old in enumerate(order):
        span, target = slice(rows.indptr[old], rows.indptr[old + 1]), slice(done.rows.indptr[new], done.rows.indptr[new + 1])
        np.testing.assert_array_equal(done.features[done.rows.indices[target]], rows.indices[span])
        np.testing.assert_array_equal(done.rows.values[target], rows.values[span])


def run(rows: SparseRows, requests: list[Request], threads: int) -> list[Any]:
    """What a Sweeper answers to requests."""
    answers = []

    def steps() -> Generator[Request, Any, Result]:
        for request in requests:
            answer = yield request
            answers.append(answer)
        return Result(np.zeros(0), 0.0, np.zeros(0), 0.0, Status.CONVERGED)

    with Sweeper(rows, threads=threads) as sweeper:
        assert sweeper.threads == threads, "too small for threads: the test would not test them"
        sweeper.run({"": steps()})
    return answers


@pytest.mark.parametrize("size", [7, 100, 1 << 24])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_sweep_is_the_dense_product_however_it_is_cut(monkeypatch: pytest.MonkeyPatch, size: int, threads: int) -> None:
    monkeypatch.setattr(sweeps, "SLICE", size)
    monkeypatch.setattr(sweeps, "_SERIAL", 0)
    rows = random_rows(np.random.default_rng(5), 61, 9, density=0.5).between(3, 60)
    X, rng = with_bias(dense_of(rows)), np.random.default_rng(6)
    vector, weights, skipped = rng.standard_normal(10), rng.random(57) * (rng.random(57) < 0.6), (rng.random(57) < 0.5).astype(float)
    fused, plain = np.zeros(57), np.zeros(57)
    image, _, adjoint = run(rows, [Product(vector, weights, fused), Scores(vector, skipped, plain), Adjoint(weights)], threads)
    scores: Array = X @ vector
    np.testing.assert_allclose(image, X.T @ (weights * scores), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(fused, np.where(weights > 0, scores, 0), rtol=1e-12)
    np.testing.assert_allclose(plain, np.where(skipped == 0, scores, 0), rtol=1e-12)
    np.testing.assert_allclose(adjoint, X.T @ weights, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("lengths", [[0] * 9, [0, 0, 500, 0, 1, 2], [1], [300, 1, 1, 1]], ids=str)
def test_every_row_is_in_exactly_one_chunk(monkeypatch: pytest.MonkeyPatch, lengths: list[int], threads: int) -> None:
    monkeypatch.setattr(sweeps, "SLICE", 64)
    monkeypatch.setattr(sweeps, "_SERIAL", 0)
    indptr: NDArray[np.int64] = np.cumsum([5, *lengths])
    rows = SparseRows(indptr, np.zeros(indptr[-1], np.uint32), np.ones(indptr[-1], np.float32), 1)
    scores, counts = np.zeros(len(lengths)), np.ones(len(lengths))
    adjoint = run(rows, [Adjoint(counts), Scores(np.array([1.0, 0.5]), np.zeros(len(lengths)), scores)], threads)[0]
    np.testing.assert_array_equal(adjoint, [sum(lengths), len(lengths)])
    np.testing.assert_array_equal(scores, np.array(lengths) + 0.5)


def test_slices_are_bounded_by_the_longest_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "SLICE", 50)
    rows = random_rows(np.random.default_rng(7), 300, 9, density=0.5)
    with Sweeper(rows, threads=1) as sweeper:
        weights = [rows.between(bounds[0], bounds[-1]).n_nonzeros + bounds[-1] - bounds[0] for bounds in sweeper._slices]
    assert max(weights) <= 50 + 10
    assert sum(weights) == rows.n_nonzeros + 300


def test_a_failing_thread_fails_the_run(monkeypatch: pytest.MonkeyPatch, whole: SparseRows) -> None:
    monkeypatch.setattr(sweeps, "_SERIAL", 0)

    def broken(*arguments: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(kernels, "adjoint_rows", broken)
    with pytest.raises(ZeroDivisionError):
        run(whole, [Adjoint(np.ones(30))], 2)
