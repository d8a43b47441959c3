"""Kernel rows beside scikit-learn's kernels, their functions beside NumPy's, the rules for gamma, and values beyond
float32.
"""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from core.kernels.function import Kernel
from core.kernels.gamma import resolve_kernel
from core.kernels.gram import Gram, apply_to_products, scaled_to_range
from tests.core.kernels.rows import whole
from tests.core.problems import Array, dense_of, random_rows, rows_of

RBF = Kernel("rbf", 0.4)

KERNELS: list[tuple[Kernel, Callable[[Array], Array]]] = [
    (Kernel("linear"), linear_kernel),
    (Kernel("rbf", 0.3), lambda X: rbf_kernel(X, gamma=0.3)),
    (Kernel("poly", 0.5, 3, 1.0), lambda X: polynomial_kernel(X, gamma=0.5, degree=3, coef0=1.0)),
    (Kernel("poly", 0.5, 2, 0.0), lambda X: polynomial_kernel(X, gamma=0.5, degree=2, coef0=0.0)),
]


@pytest.mark.parametrize(("kernel", "theirs"), KERNELS, ids=["linear", "rbf", "poly 3", "poly 2"])
@pytest.mark.parametrize(("d", "density"), [(7, 0.9), (400, 0.02), (1, 0.0)], ids=["dense", "sparse", "all empty"])
def test_rows_are_those_of_scikit_learn(
    kernel: Kernel, theirs: Callable[[Array], Array], d: int, density: float
) -> None:
    rows = random_rows(np.random.default_rng(2), 60, d, density)
    np.testing.assert_allclose(whole(Gram(rows, kernel)), theirs(dense_of(rows)), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("d", "density"), [(7, 0.9), (400, 0.02)], ids=["dense", "sparse"])
def test_rows_of_a_part_of_a_matrix_are_its_own(d: int, density: float) -> None:
    """A view with offsets that do not start at 0."""
    rows = random_rows(np.random.default_rng(3), 60, d, density)
    np.testing.assert_allclose(
        whole(Gram(rows.between(20, 50), RBF)), rbf_kernel(dense_of(rows)[20:50], gamma=0.4), atol=2e-5
    )


def test_distances_far_from_the_origin_keep_their_digits() -> None:
    dense = np.random.default_rng(4).standard_normal((30, 3)) + 300.0
    rows = rows_of(dense)
    np.testing.assert_allclose(whole(Gram(rows, RBF)), rbf_kernel(dense_of(rows), gamma=0.4), atol=1e-3)


RULES = pytest.mark.parametrize("rule", ["scale", "median"])


def gamma_of(rule: str, dense: np.ndarray) -> float:
    return resolve_kernel("rbf", rule, 3, 0.0, rows_of(dense)).gamma


@RULES
@pytest.mark.parametrize("exponent", [-120, -66, 1, 66, 120])
def test_gamma_is_in_units_of_the_values(rule: str, exponent: int) -> None:
    dense = dense_of(random_rows(np.random.default_rng(0), 60, 5, 0.8))
    assert gamma_of(rule, np.ldexp(dense, exponent)) == pytest.approx(
        np.ldexp(gamma_of(rule, dense), -2 * exponent), rel=1e-6
    )


@RULES
@pytest.mark.parametrize("value", [1e5, 4e18, 3e38])
def test_a_far_row_has_no_part_in_it(rule: str, value: float) -> None:
    dense = dense_of(random_rows(np.random.default_rng(1), 60, 5, 0.8))
    alone = gamma_of(rule, dense)
    assert gamma_of(rule, np.vstack([dense, np.full((1, 5), value)])) == pytest.approx(alone, rel=1e-6)


@RULES
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_gamma_of_equal_rows_is_1(rule: str, value: float) -> None:
    assert gamma_of(rule, np.full((8, 4), value)) == 1.0


def test_the_exponential_is_exact_to_a_few_units_in_the_last_place() -> None:
    powers = np.concatenate([np.linspace(-86.9, 0, 100_001), -np.logspace(-10, 1.9, 1000)]).astype(np.float32)
    values = np.zeros((1, len(powers)), np.float32)
    apply_to_products(Kernel("rbf", 1.0), values, np.zeros(1, np.float32), -powers)
    np.testing.assert_allclose(values[0], np.exp(powers.astype(np.float64)), rtol=2e-7)


@pytest.mark.parametrize("distance", [88.0, 1e10, 2e38])
def test_far_rows_have_a_kernel_value_of_0(distance: float) -> None:
    values = np.zeros((1, 3), np.float32)
    apply_to_products(
        Kernel("rbf", 1e6), values, np.full(1, distance / 2, np.float32), np.full(3, distance / 2, np.float32)
    )
    np.testing.assert_array_equal(values, 0.0)


def test_rows_that_rounding_puts_nearer_than_equal_ones_are_equal() -> None:
    values = np.full((1, 2), 1.0 + 1e-6, np.float32)
    apply_to_products(Kernel("rbf", 1.0), values, np.ones(1, np.float32), np.ones(2, np.float32))
    np.testing.assert_array_equal(values, 1.0)


@pytest.mark.parametrize(
    "kernel",
    [Kernel("linear"), Kernel("rbf", 0.3), *(Kernel("poly", 0.5, degree, 1.0) for degree in (1, 2, 3, 10))],
    ids=str,
)
def test_kernel_values_are_those_of_numpy_and_columns_beyond_are_left_alone(
    kernel: Kernel, rng: np.random.Generator
) -> None:
    left, right = rng.standard_normal((5, 7)), rng.standard_normal((600, 7))
    products = np.column_stack([left @ right.T, np.full(5, 8.0)]).astype(np.float32)
    norms = [(rows**2).sum(axis=1).astype(np.float32) for rows in (left, right)]
    expected = products[:, :-1].astype(np.float64)
    kernel.apply_to_products(expected, norms[0].astype(np.float64), norms[1].astype(np.float64))
    apply_to_products(kernel, products, norms[0], norms[1])
    np.testing.assert_allclose(products[:, :-1], expected, rtol=3e-6, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_array_equal(products[:, -1], 8.0)


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
