"""The number of labels that it takes to distinguish a model from chance."""

import math

from core.numerics.binomial import LEVEL, QUANTILE, binomial_tail

_EXACT = 1_000
"""number of labels to come up to which the binomial distribution is summed; beyond, the normal one is as close as the question deserves"""


def labels_needed(labels: int, right: int, by_chance: float, further: float) -> int | None:
    """Least number of labels left out, in all, that distinguish a model from one that is right on a share ``by_chance``.

    It is right on ``right`` of ``labels`` so far, and on a share ``further`` of those to come. The test is binomial and one-sided: so many are right
    by chance with a probability below ``LEVEL``. None if ``further`` is not above chance.
    """
    if further <= by_chance:
        return None
    for n in range(max(1, labels), labels + _EXACT + 1):
        if binomial_tail(right + round(further * (n - labels)), n, by_chance) < LEVEL:
            return n
    # of n labels, right + further (n - labels) - by_chance n = quantile · sqrt(by_chance (1 - by_chance) n): quadratic in sqrt(n)
    gain, spread = further - by_chance, QUANTILE * math.sqrt(by_chance * (1 - by_chance))
    root = (spread + math.sqrt(spread * spread + 4 * gain * (further * labels - right))) / (2 * gain)
    return math.ceil(root * root)
