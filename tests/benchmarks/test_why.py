"""The README's figure: draws and lines."""

import numpy as np
import pytest

from benchmarks.why import LABELS, METHODS, SETS, drawn, line


@pytest.mark.parametrize("n", LABELS)
@pytest.mark.parametrize("seed", range(3))
def test_a_draw_is_random_and_misses_no_class(n: int, seed: int) -> None:
    codes = np.random.default_rng(0).choice(4, 5000, p=[0.8, 0.15, 0.049, 0.001]).astype(np.int32)
    labeled = drawn(codes, n, seed)
    assert len(np.unique(labeled)) == n
    assert (np.diff(labeled) > 0).all()
    assert set(codes[labeled]) == {0, 1, 2, 3}
    assert not np.array_equal(labeled, drawn(codes, n, seed + 1))


def test_a_line_has_means_and_deviations() -> None:
    found = [dict.fromkeys(METHODS, error) for error in (0.1, 0.3)]
    assert line(next(iter(SETS)), 20, found)[1:] == ["20", *["0.200 (0.100)"] * len(METHODS)]
