"""Passes over rows, sparse and full, against dense NumPy: views, several threads, several slices."""

import threading
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents import reorder
from core.documents.reorder import compact
from core.documents.rows import FullRows, SparseRows
from core.engine import block_loops, passes
from core.engine import csr_loops as loops
from core.engine import parts as cutting
from core.engine.parts import part_ranges
from core.engine.passes import Passes
from core.engine.requests import Adjoint, Cut, Product, Scores, Stopped
from core.numerics.width import WIDTH
from tests.calls import noted
from tests.core.problems import dense_of, normal, random_rows, with_bias
from tests.waiting import SOON


@pytest.fixture
def whole() -> SparseRows:
    rows = random_rows(np.random.default_rng(0), 30, 9)
    assert (np.diff(rows.indptr) == 0).any(), "the fixture has empty rows"
    return rows


def test_the_largest_column_is_read_as_an_unsigned_number() -> None:
    """Where a signed 32-bit index would wrap around, only the loops that take no vector of that length can be tried:
    gathering and counting.
    """
    top = np.array([2**32 - 1], np.uint32)
    out = np.zeros(1, np.uint32)
    column_of = np.arange(3, dtype=np.uint32)
    column_of[2] = top[0]
    indptr, value = np.array([0, 1]), np.ones(1, np.float32)
    reorder.gather_rows(
        indptr, np.array([2], np.uint32), value, np.zeros(1, np.int64), column_of, 0, 1, indptr, out, value.copy()
    )
    assert out[0] == 2**32 - 1


@pytest.mark.parametrize("start", [0, 11])
@pytest.mark.parametrize("n_features", [9, 2**31])
def test_compact_reorders_rows_and_drops_empty_columns(whole: SparseRows, start: int, n_features: int) -> None:
    """Once through a table of all columns, once by sorting: the second where the table would need 16 GB."""
    indices = whole.indices.copy()
    indices[indices == 4] = 5 if n_features == 9 else n_features - 1
    rows = whole._replace(indices=indices, n_features=n_features).between(start, 30)
    order = np.random.default_rng(4).permutation(rows.n_rows)
    done = compact(rows, order, lambda: None)
    assert done.rows.n_features == len(done.features) == len(np.unique(indices[rows.indptr[0] : rows.indptr[-1]]))
    assert 4 not in done.features
    for new, old in enumerate(order):
        span, target = (
            slice(rows.indptr[old], rows.indptr[old + 1]),
            slice(done.rows.indptr[new], done.rows.indptr[new + 1]),
        )
        np.testing.assert_array_equal(done.features[done.rows.indices[target]], rows.indices[span])
        np.testing.assert_array_equal(done.rows.values[target], rows.values[span])


@pytest.fixture(params=[1, 2, 5], ids="{}-threads".format)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A number of threads, which small rows get too."""
    monkeypatch.setattr(passes, "_SERIAL", 0)
    return int(request.param)


@pytest.fixture(params=[16, 100, 1 << 24], ids="slices-of-{}".format)
def slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(passes, "SLICE", request.param)
    return int(request.param)


@pytest.mark.usefixtures("slices")
@pytest.mark.parametrize("read", [0.2, 0.6])
@pytest.mark.parametrize(
    ("count", "blocks_of"), [(0, {}), (1, {}), (2, {}), (5, {0.6: [5]}), (8, {0.6: [8]}), (11, {0.6: [8]})]
)
def test_products_together_are_the_products_alone(
    monkeypatch: pytest.MonkeyPatch, threads: int, count: int, blocks_of: dict[float, list[int]], read: float
) -> None:
    """As one-vs-rest asks for them: with their own weights, some rows read by one alone, scores untouched where a
    weight is 0.

    In blocks where they read more rows than a block costs.
    """
    made_of = noted(monkeypatch, Passes, "_block", lambda _, requests: len(requests))
    rows = random_rows(np.random.default_rng(5), 61, 9, density=0.5).between(3, 60)
    X, rng = with_bias(dense_of(rows)), np.random.default_rng(7)
    asked = [
        Product(normal(rng, 10), rng.random(57) * (rng.random(57) < read), np.full(57, -9.0)) for _ in range(count)
    ]
    with closing(Passes(rows, threads, lambda: None)) as made:
        answers = made.products(asked)
    assert len(answers) == count
    assert made_of == blocks_of.get(read, [])
    for product, answer in zip(asked, answers, strict=True):
        scores = X @ product.vector
        np.testing.assert_allclose(answer, X.T @ (product.weights * scores), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(product.scores, np.where(product.weights > 0, scores, -9.0), rtol=1e-11, atol=1e-13)


def test_long_rows_together_have_the_bits_of_each_alone(threads: int) -> None:
    """Rows longer than the prefetch, and more columns than are unpacked at a time."""
    rows = random_rows(np.random.default_rng(5), 40, 900, density=0.5)
    assert np.diff(rows.indptr).max() > block_loops._AHEAD
    rng = np.random.default_rng(9)
    vectors, weights = rng.standard_normal((WIDTH, 901)), rng.random((WIDTH, 40))
    with closing(Passes(rows, threads, lambda: None)) as made:
        together = made.products([Product(*columns, np.zeros(40)) for columns in zip(vectors, weights, strict=True)])
        alone = [made.product(Product(*columns, np.zeros(40))) for columns in zip(vectors, weights, strict=True)]
    np.testing.assert_array_equal(together, alone)


def test_a_stopped_block_leaves_nothing_to_the_next(threads: int) -> None:
    """The sums of a block are cleared when they are read; a stopped pass's sums are not read."""
    rows = random_rows(np.random.default_rng(5), 40, 900, density=0.5)
    rng, stopping = np.random.default_rng(9), [False]
    vectors, weights = rng.standard_normal((WIDTH, 901)), rng.random((WIDTH, 40))

    def checkpoint() -> None:
        if stopping[0]:
            raise Stopped

    with closing(Passes(rows, threads, checkpoint)) as made:
        asked = [Product(*columns, np.zeros(40)) for columns in zip(vectors, weights, strict=True)]
        before = made.products(asked)
        stopping[0] = True
        with pytest.raises(Stopped):
            made.products(asked)
        stopping[0] = False
        after = made.products(asked)
    np.testing.assert_array_equal(after, before)


@pytest.mark.usefixtures("slices")
@pytest.mark.parametrize("share", [0.05, 0.6], ids=["few", "many"])
@pytest.mark.parametrize("alone", [False, True])
def test_passes_are_the_dense_products_however_they_are_cut(
    monkeypatch: pytest.MonkeyPatch, threads: int, alone: bool, share: float
) -> None:
    """Sums are added to the former values; scores are written where they are not skipped."""
    rows = random_rows(np.random.default_rng(5), 61, 9, density=0.5).between(3, 60)
    X, rng = with_bias(dense_of(rows)), np.random.default_rng(8)
    adjoint = Adjoint(normal(rng, 57) * (rng.random(57) < share), np.full(10, 2.0))
    scores = Scores(normal(rng, 10), (rng.random(57) < share).astype(float), np.full(57, -9.0))
    product = Product(scores.vector, np.abs(adjoint.weights), np.full(57, -9.0))
    with closing(Passes(rows, threads, lambda: None)) as made:
        assert made.n_threads == threads, "too small for threads: the test would not test them"
        monkeypatch.setattr(passes, "_SERIAL", 100)  # nonzeros: between the two shares
        made.adjoint(adjoint, alone)
        made.scores(scores, alone)
        images = [made.product(product, alone) for _ in range(2)]  # accumulators start anew
    np.testing.assert_allclose(adjoint.sums, 2 + X.T @ adjoint.weights, rtol=1e-11, atol=1e-12)
    found = np.array([scores.scores, product.scores])
    expected = np.where([scores.skipped == 0, product.weights > 0], X @ scores.vector, -9.0)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    for image in images:
        np.testing.assert_allclose(image, X.T @ (product.weights * (X @ product.vector)), rtol=1e-11, atol=1e-12)


@pytest.mark.usefixtures("slices")
@pytest.mark.parametrize("lengths", [[0] * 9, [0, 0, 500, 0, 1, 2], [1], [300, 1, 1, 1]], ids=str)
def test_every_row_is_in_exactly_one_chunk(lengths: list[int], threads: int) -> None:
    indptr: NDArray[np.int64] = np.cumsum([5, *lengths])
    rows = SparseRows(indptr, np.zeros(indptr[-1], np.uint32), np.ones(indptr[-1], np.float32), 1)
    scores, counts, adjoint = np.zeros(len(lengths)), np.ones(len(lengths)), np.zeros(2)
    with closing(Passes(rows, threads, lambda: None)) as made:
        made.adjoint(Adjoint(counts, adjoint))
        made.scores(Scores(np.array([1.0, 0.5]), np.zeros(len(lengths)), scores))
    np.testing.assert_array_equal(adjoint, [sum(lengths), len(lengths)])
    np.testing.assert_array_equal(scores, np.array(lengths) + 0.5)


def test_between_slices_the_caller_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every so many nonzeros, give or take a row; an error of the caller ends the pass."""
    monkeypatch.setattr(passes, "SLICE", 50)
    rows = random_rows(np.random.default_rng(7), 300, 9, density=0.5)
    scores, seen = np.full(300, np.nan), [0]

    def look() -> None:
        done = int(np.isfinite(scores).sum())
        part = rows.between(seen[-1], done)
        assert part.n_nonzeros + part.n_rows <= 50 + 10
        seen.append(done)
        if done > 200:
            raise InterruptedError

    with closing(Passes(rows, 1, look)) as made, pytest.raises(InterruptedError):
        made.scores(Scores(np.zeros(10), np.zeros(300), scores))
    assert len(seen) > 10
    assert 200 < seen[-1] < 230


def test_a_failing_thread_fails_the_pass(monkeypatch: pytest.MonkeyPatch, whole: SparseRows) -> None:
    """The calling thread waits in its first part until another has taken one, and failed."""
    monkeypatch.setattr(passes, "_SERIAL", 0)
    monkeypatch.setattr(cutting, "_PART_NONZEROS", 1)
    main, failed = threading.get_ident(), threading.Event()

    def broken(*arguments: Any) -> None:
        if threading.get_ident() != main:
            failed.set()
            raise ZeroDivisionError
        assert failed.wait(SOON)

    monkeypatch.setattr(loops, "adjoint_rows", broken)
    with closing(Passes(whole, 2, lambda: None)) as made, pytest.raises(ZeroDivisionError):
        made.adjoint(Adjoint(np.ones(30), np.zeros(whole.n_features + 1)))


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_the_bits_depend_neither_on_threads_nor_on_company(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Parts of rows, not threads, have sums of their own; a block adds up as one right-hand side does."""
    monkeypatch.setattr(cutting, "_PART_NONZEROS", 500)
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 3_000, 40)
    length = rows.n_features + 1
    vectors = rng.standard_normal((WIDTH, length))
    weights = rng.random((WIDTH, rows.n_rows)) * (rng.random((WIDTH, rows.n_rows)) < share)
    found = []
    for threads in (1, 2, 3, 8):
        with closing(Passes(rows, threads, lambda: None)) as made:
            scores, sums = np.zeros((5, WIDTH, rows.n_rows)), np.zeros((3, WIDTH, length))
            asked = [[Product(*each) for each in zip(vectors, weights, part, strict=True)] for part in scores[:3]]
            reads = [
                [Scores(*each) for each in zip(vectors, (weights == 0.0) * 1.0, part, strict=True)]
                for part in scores[3:]
            ]
            answers = [
                [made.product(one) for one in asked[0]],
                [made.product(one, alone=True) for one in asked[1]],
                made._block(asked[2]),
            ]
            for column in range(WIDTH):
                made.adjoint(Adjoint(weights[column], sums[0, column]))
                made.adjoint(Adjoint(weights[column], sums[1, column]), alone=True)
                made.scores(reads[0][column])
            made.adjoints([Adjoint(*each) for each in zip(weights, sums[2], strict=True)])
            made.all_scores(reads[1])
        found += [
            np.concatenate([each, part, total], axis=1).tobytes()
            for each, part, total in zip(answers[:2], scores[:2], sums[:2], strict=True)
        ]
        assert np.array(answers[2]).tobytes() == np.array(answers[0]).tobytes()
        assert {each.tobytes() for each in scores} == {scores[0].tobytes()}
        assert sums[2].tobytes() == sums[0].tobytes()
    assert len(set(found)) == 1


def test_parts_are_cut_by_the_rows_alone() -> None:
    """Small data have one part, sparse columns two, large data at most so many that their sums stay small beside the
    rows.
    """
    assert len(part_ranges(random_rows(np.random.default_rng(0), 100, 10))) == 1
    nonzeros, wide = (
        1 << 19,
        SparseRows(np.arange(0, (1 << 19) + 1, 8), np.zeros(1 << 19, np.uint32), np.ones(1 << 19, np.float32), 1 << 18),
    )
    assert len(part_ranges(wide)) == 2
    narrow = wide._replace(n_features=100)
    parts = part_ranges(narrow)
    assert len(parts) == nonzeros // cutting._PART_NONZEROS
    assert [start for start, _ in parts] == [0, *(stop for _, stop in parts[:-1])]
    assert parts[-1][1] == narrow.n_rows


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_cut_is_its_definition(monkeypatch: pytest.MonkeyPatch, seed: int, threads: int) -> None:
    """Over rows with and without labels, some of them empty: these score the bias, and its sign is a side too."""
    monkeypatch.setattr(passes, "_SERIAL", 0)
    monkeypatch.setattr(passes, "SLICE", 100)
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 80, 9)
    vector, labels, weights = normal(rng, 10), rng.integers(-1, 2, 80).astype(float), rng.random(80)
    scores, checkpoint = np.full(80, np.nan), []
    over = Passes(rows, threads, lambda: checkpoint.append(1))
    answer: Any = over.cut(Cut(vector, labels, weights, scores))
    over.close()
    X = with_bias(dense_of(rows))
    expected = X @ vector
    sides = np.where(labels != 0, labels, np.where(expected >= 0, 1, -1))
    short = sides * expected < 1
    assert 10 < short.sum() < 80
    assert checkpoint
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    np.testing.assert_allclose(answer, X.T @ (weights * sides * short), atol=1e-12)


def test_a_score_of_nothing_counts_as_positive() -> None:
    rows = random_rows(np.random.default_rng(0), 5, 3)
    over = Passes(rows, 1, lambda: None)
    answer = over.cut(Cut(np.zeros(4), np.zeros(5), np.ones(5), np.empty(5)))
    over.close()
    np.testing.assert_allclose(answer, with_bias(dense_of(rows)).sum(axis=0))


@pytest.fixture(params=[1, 3], ids="{}-n_threads".format)
def n_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(passes, "_SERIAL", 0)
    monkeypatch.setattr(cutting, "_PART_NONZEROS", 300)
    return int(request.param)


@pytest.mark.parametrize(("slice_size", "tile"), [(1 << 24, 1 << 16), (100, 50)])
@pytest.mark.parametrize("n_features", [5, 8, 30])
def test_passes_are_dense_products_and_keep_their_bits(
    monkeypatch: pytest.MonkeyPatch, n_threads: int, n_features: int, slice_size: int, tile: int
) -> None:
    rng = np.random.default_rng(n_features)
    rows = FullRows.of(rng.standard_normal((107, n_features)).astype(np.float32)).between(4, 105)
    X = with_bias(rows.matrix.astype(np.float64))
    asked = [
        Product(rng.standard_normal(n_features + 1), rng.random(101) * (rng.random(101) < share), np.full(101, -9.0))
        for share in np.linspace(0, 1, 8)
    ]
    with closing(Passes(rows, 1, lambda: None)) as usual:
        plain = [usual.product(product) for product in asked]
        scores = [product.scores.copy() for product in asked]
    for product, answer, found in zip(asked, plain, scores, strict=True):
        np.testing.assert_allclose(answer, X.T @ (product.weights * (X @ product.vector)), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(
            found, np.where(product.weights > 0, X @ product.vector, -9.0), rtol=1e-11, atol=1e-12
        )
        product.scores[:] = -9.0
    monkeypatch.setattr(passes, "SLICE", slice_size)
    monkeypatch.setattr(passes, "_TILE", tile)
    with closing(Passes(rows, n_threads, lambda: None)) as cut:
        for answer, expected, product, found in zip(cut.products(asked), plain, asked, scores, strict=True):
            np.testing.assert_array_equal(answer, expected)
            np.testing.assert_array_equal(product.scores, found)
            np.testing.assert_array_equal(cut.product(product, alone=True), expected)


def test_scores_adjoints_and_cuts(n_threads: int, rng: np.random.Generator) -> None:
    rows = FullRows.of(rng.standard_normal((90, 11)).astype(np.float32))
    X, vector = with_bias(rows.matrix.astype(np.float64)), rng.standard_normal(12)
    weights, labels = rng.standard_normal(90) * (rng.random(90) < 0.7), rng.integers(-1, 2, 90).astype(float)
    scores, sums, cut = np.full(90, np.nan), np.zeros(12), np.zeros(90)
    with closing(Passes(rows, n_threads, lambda: None)) as made:
        made.scores(Scores(vector, (weights == 0).astype(float), scores))
        made.adjoint(Adjoint(weights, sums))
        found = made.cut(Cut(vector, labels, weights, cut))
    np.testing.assert_allclose(scores, np.where(weights != 0, X @ vector, np.nan), rtol=1e-11)
    np.testing.assert_allclose(sums, X.T @ weights, rtol=1e-11, atol=1e-12)
    sides = np.where(labels == 0, np.where(X @ vector >= 0, 1.0, -1.0), labels)
    np.testing.assert_allclose(cut, X @ vector, rtol=1e-11)
    np.testing.assert_allclose(found, X.T @ (weights * sides * (sides * (X @ vector) < 1)), rtol=1e-11, atol=1e-12)
