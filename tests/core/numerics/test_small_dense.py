"""Factors of small matrices, beside NumPy's."""

import numpy as np
import pytest

from core.numerics.small_dense import factor_rows, invert_rows, row_products


def test_a_factor_made_in_strips_is_cholesky_s_and_its_inverse_is_one(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(23, 40))
    matrix = row_products(rows, rows)
    assert matrix == pytest.approx(rows @ rows.T)
    factor, inverse = matrix.copy(), np.zeros_like(matrix)
    for start, stop in [(0, 7), (7, 8), (8, 23)]:
        factor_rows(factor, start, stop, 0.0)
        invert_rows(factor, start, stop, inverse)
    assert factor == pytest.approx(np.linalg.cholesky(matrix))
    assert inverse @ factor == pytest.approx(np.eye(23), abs=1e-9)


def test_a_row_that_depends_on_others_has_no_part() -> None:
    rows = np.array([[1.0, 0.0, 2.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0]])
    factor, inverse = row_products(rows, rows), np.zeros((3, 3))
    factor_rows(factor, 0, 3, 1e-9)
    invert_rows(factor, 0, 3, inverse)
    assert not factor[1, 1]
    assert not inverse[1].any()
    basis = inverse @ rows
    assert basis @ basis.T == pytest.approx(np.diag([1.0, 0.0, 1.0]))
