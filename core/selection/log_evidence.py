"""Log evidence for a fraction of positive documents: each source a small pure function, in nats, up to a constant.

Conventions: ``fractions`` r of shape (n,) ascend strictly between 0 and 1; scores are shifted for each of them, so that
this share of the unlabeled documents is above 0.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.binomial import QUANTILE
from core.numerics.elementary import Matrix, Vector, exp, log, log_add_exp, log_of, log_sum_exp, logit, logit_of
from core.validation.calibration import LOG_SLOPE_SPREAD, slopes_at

_RANGE, _SLOPES = 2.1, 15
"""of the logarithm of the slope: distance from that of core.validation.calibration.SLOPE to both ends, and number of
values that are averaged over"""
HELD_OUT_WORTH = 2.0
"""what a label left out is worth: it is predicted by solutions that have two thirds of the labels, and are less sure
than the one that has all"""
_MOST_HELD_OUT = 40.0
"""what all labels left out are worth together: where there are many, the bias of this evidence is larger than its error
by chance"""
_PRIOR = 0.5
"""labels of each side by which a share above a threshold is smoothed (Jeffreys)"""
_COUNT_WORTH = 2.0
"""what the adjusted count is worth"""
LEAST = 0.01
"""bound on a predicted fraction's distance from 0 and 1"""
_FREEDOM, _PEAK = 3.0, 2.0 / (math.pi * math.sqrt(3.0))
"""degrees of freedom of the error of predicted fractions, and the largest density of Student's law that has these"""
_AT_ONCE = 1 << 18
"""losses that are computed at once"""
_SLACK_COUNT, _SLACK_RATIO = 2, 1.2
"""difference or ratio within which class counts are balanced: a label may be wrong, or a label short"""
PLANNED_CLASSES, _PLANNED_COUNT = 4, 3
"""classes and labels of each from which equal numbers of all classes but one are hardly chance"""
CHOSEN = 3.0
"""labels of each class in the urn of anybody's choice: who chooses labels seldom takes one of a class and fifty of
another, as a random sample of a rare class has them"""
_CAP, _ROUND = 20, 5
"""labels from which several classes hardly have equally many by chance, where no class has more; two classes have in 1
to 10 of 100 random samples, but seldom a number that people choose, of which this is a divisor"""


class LabelCounts(NamedTuple):
    """Numbers of the labels of a two-class problem that may say something of the fraction."""

    positive: int
    """positive labels of a random sample"""
    total: int
    """labels of a random sample"""
    unknown_positive: int
    """positive labels of which nobody says how they were come by, if their numbers are no plan"""
    unknown_total: int
    """all of these"""
    n_labeled: int
    """all labels, of whatever origin"""


def is_balanced(counts: NDArray[np.integer[Any]]) -> bool:
    """Whether class counts, shape (n_classes,), are nearly equal."""
    return bool(counts.max() - counts.min() <= _SLACK_COUNT or counts.max() <= _SLACK_RATIO * counts.min())


def is_planned(counts: NDArray[np.integer[Any]]) -> bool:
    """Whether somebody labeled so many of each class, so that the counts, shape (n_classes,), are no evidence of the
    fractions.

    They are nearly equal, or more even than chance makes them, or were so before one class got more or was left behind.
    Or several classes have the same number and no class has more: so many of each were labeled, or all that were found.
    By two classes that is told from chance where the number is round.
    Counts that are drawn at random are so only where the classes are about as frequent. There nothing is lost. Of all
    classes but one they are so by chance where there are few classes or labels.
    """
    if is_balanced(counts):
        return True
    ascending = np.sort(counts)
    if len(counts) < PLANNED_CLASSES:
        return False
    if ascending[0] < _PLANNED_COUNT:
        return _is_evened(counts)
    most, second, third = ascending[-1], ascending[-2], ascending[-3]
    capped = most >= _CAP and most == second and (second == third or most % _ROUND == 0)
    return bool(capped) or any(
        is_balanced(each) or _is_evened(each) for each in (ascending, ascending[1:], ascending[:-1])
    )


def _is_evened(counts: NDArray[np.integer[Any]]) -> bool:
    """Whether class counts, shape (n_classes,), are more even than chance makes those of equally frequent classes.

    Their dispersion is a chi-squared then, with one degree of freedom less than there are classes, and larger of
    classes that are not as frequent. Its quantile is that of Wilson and Hilferty, 1931.
    """
    mean, spread = counts.mean(), 2.0 / (9.0 * (len(counts) - 1))
    quantile = (len(counts) - 1) * (1.0 - spread - QUANTILE * math.sqrt(spread)) ** 3
    return bool(np.square(counts - mean).sum() < quantile * mean)


def from_sample(fractions: Vector, counts: LabelCounts) -> Vector:
    """Binomial log-likelihood of the numbers of labels that are known to be a random sample.

    Beforehand all logits are as likely (Haldane's prior): one class of many is as usual as one of two.
    """
    return _log_binomial(fractions, counts.positive, counts.total, counts.n_labeled)


def sample_log_odds(fractions: Vector, counts: LabelCounts) -> Vector:
    """At each fraction the log-odds that labels of unknown origin are a random sample, shape (n,).

    A random sample has binomial numbers. Otherwise they are anybody's choice, by Pólya's urn with CHOSEN labels of each
    class. Both are as probable beforehand.
    """
    ones, total = counts.unknown_positive, counts.unknown_total
    chosen = log_polya(np.full(2, CHOSEN), np.array([ones, total - ones]))
    return _log_binomial(fractions, ones, total, counts.n_labeled) - chosen


def _log_binomial(fractions: Vector, positive: int, total: int, n_labeled: int) -> Vector:
    """Log-probability of the labels of a random sample in their order.

    Where there are no other labels, it is known that both classes have some: there would be no training otherwise. So
    that the only label of a class is there says nothing.
    """
    sides = log(fractions), log(1.0 - fractions)
    found = np.asarray(positive * sides[0] + (total - positive) * sides[1])
    return found if total < n_labeled else found - log(1.0 - exp(total * sides[0]) - exp(total * sides[1]))


def log_polya(prior: Vector, counts: NDArray[np.integer[Any]]) -> float:
    """Log-probability of labels in their order, as many of each class as ``counts``, where the fractions have
    Dirichlet's distribution with these parameters (Pólya's urn), both of shape (n_classes,).
    """
    return sum(map(_log_rising, prior.tolist(), counts.tolist())) - _log_rising(float(prior.sum()), int(counts.sum()))


def _log_rising(first: float, count: int) -> float:
    """Logarithm of the product of so many factors, each larger by 1 than the last."""
    return float(log(np.arange(count) + np.float64(first)).sum())


def from_counts(log_odds: Vector) -> Vector:
    """Log-likelihood by numbers of labels that may be a random sample's, from their ``log_odds``.

    They say much near the fraction that they show, and next to nothing against a fraction far from it that other
    evidence shows.
    """
    return log_add_exp(log_odds, np.zeros(1))


def from_prediction(fractions: Vector, predicted: float, error: float, doubt: float = 0.0) -> Vector:
    """Log-likelihood of a fraction ``predicted`` by a model that has none set, ``error`` being the scale of its error
    in logits, and ``doubt`` the probability that it says nothing.

    It is near the truth but for outliers, when few labels put the threshold amid all scores: so the error is Student's
    with three degrees of freedom. A prediction that says nothing may be any.
    """
    off = logit(fractions) - logit_of(min(max(predicted, LEAST), 1 - LEAST))
    telling = np.asarray(-0.5 * (_FREEDOM + 1) * log(1.0 + (off / error) ** 2 / _FREEDOM))
    if not doubt:
        return telling
    # densities by the logit: that of Student's law, and an even one over all that may be predicted
    return log_add_exp(
        telling + log_of(_PEAK * (1.0 - doubt) / error), np.full(1, log_of(doubt / (2.0 * logit_of(1 - LEAST))))
    )


def from_held_out(scores: Matrix, y: Vector) -> Vector:
    """Logistic log-likelihood of labels left out, shape (n,), by ``scores`` of shape (n, n_labeled) and ``y``, -1 or
    +1, of shape (n_labeled,).

    Both classes weigh the same in total, and no label more than HELD_OUT_WORTH. Scores by which too many documents are
    positive call negative labels left out positive, and the reverse. How much a score says is as unknown as the
    fraction: it is averaged over slopes under a log-normal prior. Scores that hardly separate the classes would rule
    out nearly all fractions by being sure, and wrong, of many labels. Or scores say nothing at all, which is as
    probable beforehand: then labels are as likely as by chance at every fraction. Where none does much better than
    that, none is ruled out.
    """
    positive, negative = np.count_nonzero(y > 0), np.count_nonzero(y < 0)
    weights = min(positive, negative) / np.where(y > 0, positive, negative)
    steps = np.linspace(-_RANGE, _RANGE, _SLOPES)
    worth = min(HELD_OUT_WORTH, _MOST_HELD_OUT / (2 * min(positive, negative)))
    slopes, at_once = slopes_at(steps), max(1, _AT_ONCE // max(1, scores.size))
    losses = [
        (weights * log_add_exp(np.zeros(1), -y * (slopes[start : start + at_once, None, None] * scores))).sum(axis=2)
        for start in range(0, len(slopes), at_once)
    ]
    prior = -0.5 * (steps / LOG_SLOPE_SPREAD) ** 2
    telling = np.asarray(
        log_sum_exp(-worth * np.concatenate(losses) + prior[:, None], axis=0) - log_sum_exp(prior, axis=0)
    )
    chance = -worth * float((weights * log_add_exp(np.zeros(1), np.zeros(len(y)))).sum())
    return log_add_exp(telling, np.full(1, chance)) - log_of(2.0)


def likelihood_or_count(held_out: Vector, count: Vector) -> Vector:
    """The log-evidence of labels left out: their likelihood or their adjusted count, each relative to its largest.

    The likelihood prefers a threshold midway between the classes. That steadies an estimate by few labels, and is a
    bias where a class is rare. The count has none, and says little by few labels. Which of both is right is as likely
    beforehand.
    """
    return log_add_exp(held_out - held_out.max(), count - count.max())


class Rates(NamedTuple):
    """Of labels left out, the shares that score above the threshold above which a fraction r of the unlabeled documents
    does, by fraction.
    """

    true: Vector
    """shape (n,): of the positive labels"""
    true_variance: Vector
    false: Vector
    """shape (n,): of the others"""
    false_variance: Vector


def rates_above(above: NDArray[np.bool_], y: Vector) -> Rates:
    """The rates by ``above``, shape (n, n_labeled): which labels left out score above the threshold of each fraction.

    ``y``: -1 or +1, shape (n_labeled,). Variances are those of binomial shares.
    """
    return Rates(*_rate(above[:, y > 0]), *_rate(above[:, y < 0]))


def from_adjusted_count(fractions: Vector, rates: Rates) -> Vector:
    """Log-likelihood of the count of positives at each fraction r, shape (n,), by the ``rates`` at these.

    By them the share above the threshold is ``r · TPR + (1 − r) · FPR``. It is r where misses and false alarms are
    even: adjusted classify and count. Source: Forman, Quantifying counts and costs via classification, 2008.
    """
    rest = 1.0 - fractions
    off = fractions * rates.true + rest * rates.false - fractions
    return np.asarray(
        -0.5
        * _COUNT_WORTH
        * off
        * off
        / (fractions * fractions * rates.true_variance + rest * rest * rates.false_variance)
    )


def _rate(above: NDArray[np.bool_]) -> tuple[Vector, Vector]:
    """Means and variances of the share of labels that are above a threshold, by rows."""
    count = above.shape[1] + 2 * _PRIOR
    mean = (above.sum(axis=1) + _PRIOR) / count
    return mean, mean * (1 - mean) / (count + 1)
