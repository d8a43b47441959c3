"""The sign test, against SciPy's exact binomial test."""

import pytest
from scipy.stats import binomtest

from core.evaluation.sign_test import LEAST_DISCORDANT, is_worse, sign_test
from core.numerics.binomial import LEVEL


@pytest.mark.parametrize(("gained", "lost"), [(0, 5), (1, 4), (2, 14), (7, 7), (30, 51), (0, 0), (9, 0), (4_900, 5_100), (49_000, 51_000)])
def test_it_is_the_exact_binomial_test(gained: int, lost: int) -> None:
    expected = binomtest(gained, gained + lost, alternative="less").pvalue if gained + lost else 1.0
    assert sign_test(gained, lost) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_a_few_are_no_evidence() -> None:
    assert not any(is_worse(0, lost) for lost in range(LEAST_DISCORDANT))
    assert is_worse(0, LEAST_DISCORDANT)
    assert sign_test(0, LEAST_DISCORDANT) < LEVEL < sign_test(0, LEAST_DISCORDANT - 1)


@pytest.mark.parametrize(("gained", "lost", "worse"), [(5, 0, False), (9, 9, False), (3, 10, True), (4, 10, False), (5, 15, True), (9, 12, False)])
def test_worse_is_what_chance_does_not_allow(gained: int, lost: int, worse: bool) -> None:
    assert is_worse(gained, lost) is worse
