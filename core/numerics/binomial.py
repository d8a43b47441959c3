"""The binomial law: the level at which chance is ruled out, intervals and tests of proportions by random samples, trust
in a ranking, and the labels that a test needs.

Sources: Clopper & Pearson, The use of confidence or fiducial limits illustrated in the case of the binomial, 1934;
Angelopoulos, Bates, Candès, Jordan & Lei, Learn then test, 2021 (fixed-sequence testing with several starts).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


_EXACT = 1_000
"""number of labels to come up to which the binomial distribution is summed; beyond, the normal one is as close as the
question deserves"""
_STEPS = 60
_STARTS = 2


class Interval(NamedTuple):
    """A confidence interval of a proportion."""

    low: float
    high: float


@lru_cache(maxsize=4096)
def clopper_pearson(successes: int, n: int) -> Interval:
    """The exact interval for ``successes`` of ``n``: it misses the proportion with a probability of at most ``LEVEL``,
    half of it on either side.
    """
    if n == 0:
        return Interval(0.0, 1.0)
    low = 0.0 if successes == 0 else _root(lambda p: binomial_tail(successes, n, p) - LEVEL / 2)
    high = 1.0 if successes == n else _root(lambda p: LEVEL / 2 - 1 + binomial_tail(successes + 1, n, p))
    return Interval(low, high)


LEAST_DISCORDANT = 5
"""least number of discordant documents that can be evidence: with fewer not even all of one sort have a probability
below ``LEVEL``"""


def sign_test(gained: int, lost: int) -> float:
    """P-value of the exact one-sided test: at most ``gained`` heads among ``gained + lost`` tosses of a fair coin.

    It compares two classifiers on the same documents. Only discordant documents count, on which one is right and the
    other is not: were both as good, each of these would favour either with probability 1/2.
    """
    return binomial_tail(lost, gained + lost, 0.5)


def is_worse(gained: int, lost: int) -> bool:
    """Whether a classifier that alone is right on ``gained`` documents, and alone wrong on ``lost``, is worse than the
    other.
    """
    return gained + lost >= LEAST_DISCORDANT and sign_test(gained, lost) < LEVEL


class Promise(NamedTuple):
    """How far the labels of a model can be trusted without looking."""

    threshold: float | None
    """confidence above which labels have the promised precision; None if that of all labels can be trusted"""
    labels: int
    """number of labels of the sample above it"""
    errors: int
    """number of these that were wrong"""


def fewest_labels(precision: float) -> int:
    """Least number of labels, none of them wrong, that can support a promise."""
    return int(np.ceil(log_of(LEVEL / _STARTS) / log_of(precision)))


def promise(confidences: NDArray[np.floating], right: NDArray[np.bool_], precision: float) -> Promise | None:
    """The largest part of the documents, by confidence, with at least ``precision`` right; None without support by the
    sample.

    ``confidences`` and ``right`` are of a random sample that the model was not told, shape (n,) each. What is promised
    is false with a probability of at most ``LEVEL``. The parts are those above the confidence of one document of the
    sample. From either of two starts they are tested one after the other, from the surest to all, each at LEVEL / 2,
    until one fails. A part and its size depend on no label, and given the document that bounds it those above it are a
    random sample of the part: so each test is an exact binomial one, and none need be paid for but the starts.
    """
    order = np.argsort(-confidences, kind="stable")
    ordered, wrong = confidences[order], np.cumsum(~right[order])
    # equal confidences are in one part or in none
    sizes = [*(np.flatnonzero(ordered[1:] < ordered[:-1]) + 1).tolist(), len(ordered)]
    least, best = fewest_labels(precision), 0
    possible = [size for size in sizes if size >= least]
    for start in sorted({0, len(possible) // _STARTS}):
        for size in possible[start:]:
            # so few errors would not be unlikely if fewer than ``precision`` were right
            if binomial_tail(size - int(wrong[size - 1]), size, precision) > LEVEL / _STARTS:
                break
            best = max(best, size)
    if not best:
        return None
    return Promise(None if best == len(ordered) else float(ordered[best]), best, int(wrong[best - 1]))


def labels_needed(labels: int, right: int, by_chance: float, further: float) -> int | None:
    """Least number of labels left out, in all, that distinguish a model from one that is right on a share
    ``by_chance``.

    It is right on ``right`` of ``labels`` so far, and on a share ``further`` of those to come. The test is binomial and
    one-sided: so many are right by chance with a probability below ``LEVEL``. None if ``further`` is not above chance.
    """
    if further <= by_chance:
        return None
    for n in range(max(1, labels), labels + _EXACT + 1):
        if binomial_tail(right + round(further * (n - labels)), n, by_chance) < LEVEL:
            return n
    # of n labels, right + further (n - labels) - by_chance n = quantile · sqrt(by_chance (1 - by_chance) n): quadratic
    # in sqrt(n)
    gain, spread = further - by_chance, QUANTILE * math.sqrt(by_chance * (1 - by_chance))
    root = (spread + math.sqrt(spread * spread + 4 * gain * (further * labels - right))) / (2 * gain)
    return math.ceil(root * root)


def _root(rising: Callable[[float], float]) -> float:
    """The root of a rising function on 0 to 1, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
