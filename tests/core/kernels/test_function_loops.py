"""The compiled kernel functions beside NumPy's in float64."""

import numpy as np
import pytest

from core.kernels.function import Kernel
from core.kernels.gram import apply_to_products


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
def test_kernel_values_are_those_of_numpy_and_columns_beyond_are_left_alone(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((5, 7)), rng.standard_normal((600, 7))
    products = np.column_stack([left @ right.T, np.full(5, 8.0)]).astype(np.float32)
    norms = [(rows**2).sum(axis=1).astype(np.float32) for rows in (left, right)]
    expected = products[:, :-1].astype(np.float64)
    kernel.apply_to_products(expected, norms[0].astype(np.float64), norms[1].astype(np.float64))
    apply_to_products(kernel, products, norms[0], norms[1])
    np.testing.assert_allclose(products[:, :-1], expected, rtol=3e-6, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_array_equal(products[:, -1], 8.0)
