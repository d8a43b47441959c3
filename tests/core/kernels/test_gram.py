"""Kernel rows beside scikit-learn's kernels."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from core.kernels.function import Kernel
from core.kernels.gram import Gram
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
