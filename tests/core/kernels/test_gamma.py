"""The rules for gamma, over documents of any scale and beside documents of huge values."""

import numpy as np
import pytest

from core.kernels.gamma import resolve_kernel
from tests.core.problems import dense_of, random_rows, rows_of

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
