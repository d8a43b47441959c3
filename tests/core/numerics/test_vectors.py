"""The positions of the largest values beside a stable sort."""

import numpy as np
import pytest

from core.numerics.vectors import positions_of_largest


@pytest.mark.parametrize("count", [-1, 0, 1, 7, 99, 100, 101])
@pytest.mark.parametrize("kinds", [1, 3, 1000])
def test_equal_values_go_by_position(count: int, kinds: int) -> None:
    values = np.random.default_rng(kinds).integers(0, kinds, 100)
    expected = np.sort(np.argsort(-values, kind="stable")[: max(0, count)])
    np.testing.assert_array_equal(positions_of_largest(values, count), expected)
    np.testing.assert_array_equal(positions_of_largest(values.astype(np.float64), count), expected)


def test_infinite_values_have_their_place() -> None:
    assert positions_of_largest(np.array([-np.inf, 1.0, np.inf, np.inf, 0.0]), 3).tolist() == [1, 2, 3]
