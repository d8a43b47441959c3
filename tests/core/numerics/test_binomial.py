"""The binomial law, against SciPy."""

import pytest
from scipy.stats import binom, binomtest, norm

from core.numerics.binomial import LEVEL, QUANTILE, QUARTILE, binomial_tail, wilson_interval


@pytest.mark.parametrize("probability", [0.01, 1 / 3, 0.5, 0.97])
@pytest.mark.parametrize(("least", "n"), [(0, 4), (1, 1), (3, 9), (9, 9), (10, 9), (120, 300)])
def test_the_tail_of_the_binomial_distribution(least: int, n: int, probability: float) -> None:
    assert binomial_tail(least, n, probability) == pytest.approx(
        binom.sf(least - 1, n, probability), rel=1e-9, abs=1e-300
    )


def test_what_always_or_never_happens() -> None:
    assert [binomial_tail(2, 3, probability) for probability in (0.0, 1.0)] == [0.0, 1.0]


def test_the_quantile_is_that_of_the_level() -> None:
    assert norm.sf(QUANTILE) == pytest.approx(LEVEL)
    assert norm.sf(QUARTILE) == pytest.approx(0.25)


@pytest.mark.parametrize(("right", "total"), [(0, 4), (3, 7), (20, 20)])
def test_the_interval_of_wilson(right: int, total: int) -> None:
    expected = binomtest(right, total).proportion_ci(0.9, "wilson")
    assert wilson_interval(right / total, total, QUANTILE) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert wilson_interval(0, 0, QUANTILE) == (0.0, 1.0)
