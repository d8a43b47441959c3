"""The sign test: whether one of two classifiers is worse on the same documents, beyond what chance allows.

Only discordant documents count, on which one is right and the other is not. Were both as good, each of these would favour either with probability
1/2, so their number is binomial.
Source: Dietterich, Approximate statistical tests for comparing supervised classification learning algorithms, 1998 (McNemar's test, here exact).
"""

from core.numerics.binomial import LEVEL, binomial_tail

LEAST_DISCORDANT = 5
"""least number of discordant documents that can be evidence: with fewer not even all of one sort have a probability below ``LEVEL``"""


def sign_test(gained: int, lost: int) -> float:
    """P-value of the exact one-sided test: probability of at most ``gained`` heads among ``gained + lost`` tosses of a fair coin."""
    return binomial_tail(lost, gained + lost, 0.5)


def is_worse(gained: int, lost: int) -> bool:
    """Whether a classifier that alone is right on ``gained`` documents, and alone wrong on ``lost``, is worse than the other."""
    return gained + lost >= LEAST_DISCORDANT and sign_test(gained, lost) < LEVEL
