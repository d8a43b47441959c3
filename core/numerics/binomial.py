"""The binomial law, and the level at which chance is ruled out."""

import math

import numpy as np

from core.numerics.elementary import exp, log, log_of

LEVEL = 0.05
"""probability below which chance is ruled out"""
QUANTILE = 1.6448536269514722
"""quantile of the standard normal distribution that a share of ``LEVEL`` exceeds"""
QUANTILE_OF_BOTH = 1.959963984540054
"""quantile that shares of half of ``LEVEL`` on either side exceed together"""
QUARTILE = 0.6744897501960817
"""the same of a share of one quarter"""


def binomial_tail(least: int, n: int, probability: float) -> float:
    """Probability of at least ``least`` successes in ``n`` independent trials of this ``probability``, within 0 and
    1."""
    if least <= 0:
        return 1.0
    if not 0 < probability < 1:
        return float(probability >= 1)
    counts = np.arange(1.0, n + 1.0)
    log_choose = np.concatenate([[0.0], np.cumsum(log((n - counts + 1) / counts))])
    successes = np.arange(float(least), n + 1.0)
    logs = log_choose[least:] + successes * log_of(probability) + (n - successes) * log_of(1 - probability)
    return min(1.0, float(exp(logs).sum()))


def wilson_interval(share: float, total: float, quantile: float) -> tuple[float, float]:
    """Wilson's interval of a share that was found to be ``share`` in ``total`` trials; everything where there were
    none.

    ``quantile``: that of the standard normal distribution for one side. Shares of strata that are put together have the
    number of trials that one share of the same variance would have.
    """
    if not total:
        return 0.0, 1.0
    square = quantile * quantile / total
    spread = math.sqrt(share * (1 - share) * square + square * square / 4)
    return (share + square / 2 - spread) / (1 + square), (share + square / 2 + spread) / (1 + square)
