"""Rows of any scale have the kernel values of exact numbers."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from core.kernels.function import Kernel
from core.kernels.gram import Gram, scaled_to_range
from tests.core.kernels.rows import whole
from tests.core.problems import dense_of, random_rows, rows_of

SHAPES = pytest.mark.parametrize(("d", "density"), [(7, 0.9), (400, 0.02)], ids=["dense", "sparse"])


def ask() -> None:
    """A checkpoint that does nothing."""


@SHAPES
@pytest.mark.parametrize("exponent", [-120, -70, -20, 20, 63, 120])
def test_kernel_values_do_not_depend_on_the_scale_that_gamma_makes_up_for(
    d: int, density: float, exponent: int
) -> None:
    rows = random_rows(np.random.default_rng(0), 40, d, density)
    scaled = rows._replace(values=np.ldexp(rows.values, exponent))
    for kernel in (Kernel("rbf", 0.4), Kernel("poly", 0.4, 3, 1.0)):
        gram = Gram(scaled, kernel._replace(gamma=np.ldexp(0.4, -2 * exponent)))
        assert gram.fits_float32
        np.testing.assert_allclose(whole(gram), whole(Gram(rows, kernel)), rtol=2e-6, atol=1e-7)


@SHAPES
@pytest.mark.parametrize("value", [4e18, -1e30, 3e38])
def test_a_row_of_a_huge_value_is_infinitely_far_and_costs_the_others_no_digit(
    d: int, density: float, value: float
) -> None:
    dense = dense_of(random_rows(np.random.default_rng(1), 40, d, density)).astype(np.float32)
    dense[[7, 23], 3] = value
    K = whole(Gram(rows_of(dense), Kernel("rbf", 0.4)))
    others = np.delete(np.arange(40), [7, 23])
    np.testing.assert_allclose(
        K[np.ix_(others, others)], rbf_kernel(dense[others].astype(np.float64), gamma=0.4), atol=2e-5
    )
    np.testing.assert_array_equal(K[[7, 23]], np.eye(40)[[7, 23]])


def test_rows_within_the_range_are_not_copied() -> None:
    rows = random_rows(np.random.default_rng(2), 20, 5, 0.5)
    for kernel in (Kernel("linear"), Kernel("rbf", 1e-9), Kernel("poly", 1e9)):
        scaled = scaled_to_range(rows, kernel, ask)
        assert scaled.rows is rows
        assert scaled.kernel == kernel
        assert not len(scaled.isolated)


def test_a_part_of_a_matrix_is_scaled_alone() -> None:
    rows = random_rows(np.random.default_rng(3), 30, 5, 0.5).between(10, 20)
    scaled = scaled_to_range(rows, Kernel("rbf", 2.0**60), ask)
    np.testing.assert_array_equal(dense_of(scaled.rows), dense_of(rows) * 2.0**30)
    assert scaled.kernel.gamma == 1.0


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("poly", 1.0, 3)], ids=str)
def test_rows_whose_values_float32_does_not_hold_are_said(kernel: Kernel) -> None:
    dense = np.ones((5, 3))
    dense[[1, 4], 2] = 1e19
    assert Gram(rows_of(dense), kernel).out_of_range.tolist() == [1, 4]
