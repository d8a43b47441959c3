"""Passes over rows that store every feature, against dense NumPy: to the bits, however they are cut and whoever goes
beside.
"""

from contextlib import closing

import numpy as np
import pytest

from core.documents.rows import FullRows
from core.engine import parts as cutting
from core.engine import passes
from core.engine.passes import Passes
from core.engine.requests import Adjoint, Cut, Product, Scores
from tests.core.problems import with_bias


@pytest.fixture(params=[1, 3], ids="{}-threads".format)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(passes, "_SERIAL", 0)
    monkeypatch.setattr(cutting, "_PART_NONZEROS", 300)
    return int(request.param)


@pytest.mark.parametrize(("slice_size", "tile"), [(1 << 24, 1 << 16), (100, 50)])
@pytest.mark.parametrize("n_features", [5, 8, 30])
def test_passes_are_dense_products_and_keep_their_bits(
    monkeypatch: pytest.MonkeyPatch, threads: int, n_features: int, slice_size: int, tile: int
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
    with closing(Passes(rows, threads, lambda: None)) as cut:
        for answer, expected, product, found in zip(cut.products(asked), plain, asked, scores, strict=True):
            np.testing.assert_array_equal(answer, expected)
            np.testing.assert_array_equal(product.scores, found)
            np.testing.assert_array_equal(cut.product(product, alone=True), expected)


def test_scores_adjoints_and_cuts(threads: int) -> None:
    rng = np.random.default_rng(0)
    rows = FullRows.of(rng.standard_normal((90, 11)).astype(np.float32))
    X, vector = with_bias(rows.matrix.astype(np.float64)), rng.standard_normal(12)
    weights, labels = rng.standard_normal(90) * (rng.random(90) < 0.7), rng.integers(-1, 2, 90).astype(float)
    scores, sums, cut = np.full(90, np.nan), np.zeros(12), np.zeros(90)
    with closing(Passes(rows, threads, lambda: None)) as made:
        made.scores(Scores(vector, (weights == 0).astype(float), scores))
        made.adjoint(Adjoint(weights, sums))
        found = made.cut(Cut(vector, labels, weights, cut))
    np.testing.assert_allclose(scores, np.where(weights != 0, X @ vector, np.nan), rtol=1e-11)
    np.testing.assert_allclose(sums, X.T @ weights, rtol=1e-11, atol=1e-12)
    sides = np.where(labels == 0, np.where(X @ vector >= 0, 1.0, -1.0), labels)
    np.testing.assert_allclose(cut, X @ vector, rtol=1e-11)
    np.testing.assert_allclose(found, X.T @ (weights * sides * (sides * (X @ vector) < 1)), rtol=1e-11, atol=1e-12)
