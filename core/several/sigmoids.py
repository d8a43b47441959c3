"""Fits a sigmoid a label, where a document may have several, and the thresholds from which labels are given.

Labels may be many and have few documents each. So a slope is near the one that all labels have in common, and an offset
makes the mean probability of the unlabeled documents the label's fraction among them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.numerics.compiled import exp
from core.numerics.elementary import Matrix, Vector, log, logit
from core.progress import Checkpoint

_LOG_SLOPES = np.linspace(-1.2, 2.1, 12)
"""logarithms of the slopes that are tried"""
_LOG_SLOPE_SPREAD = 0.5
"""standard deviation of the normal prior of a label's logarithm of the slope, around that of all labels"""
_LEAST = 1e-12
_SURPRISING = 4.0
"""standard deviations of a chi-squared from which on numbers of labels are somebody's choice"""
_ROUNDS, _NEAR = 60, 1e-9
"""Newton steps of offsets at most, and the error of a mean at which they end"""
_AT_ONCE = 1 << 20
"""probabilities that are computed between two checkpoints"""


class LabelFit(NamedTuple):
    """Sigmoids of standardised scores, and what they were fitted to."""

    slopes: Vector
    """shape (n_labels,)"""
    offsets: Vector
    """shape (n_labels,)"""
    fractions: Vector
    """shape (n_labels,): estimated share of the unlabeled documents that have the label"""
    log_likelihood: float
    """of the labels left out, the mean of all that were"""


def fit_labels(
    held_out: Matrix,
    known: NDArray[np.int8],
    scores: Matrix,
    checkpoint: Checkpoint = lambda: None,
    *,
    least: int = 2,
    drawn: NDArray[np.int8] | None = None,
) -> LabelFit:
    """Fit sigmoids to standardised scores of labeled documents by models without their labels.

    ``held_out`` of shape (n_labeled, n_labels) is NaN where nothing was left out; ``known`` of that shape is 1 where
    the label applies, -1 where it does not and 0 where that is not known; rows with a 0 do not count. ``scores`` of
    shape (n_unlabeled, n_labels) are those of the whole model. A label of which fewer than ``least`` documents could be
    left out has the share of the labeled ones as its fraction. To the share of each among those left out one document
    is added that has it as often as labels are had in the mean. ``drawn``, shape (n_labeled,), says how documents were
    drawn, by default at random: those that were found by their labels say nothing of how frequent these are.
    ``checkpoint`` is called between slices of the work; what it raises ends it.
    """
    # where some labels are not known none applies: such documents say nothing of how often labels do
    known = known * (known != 0).all(axis=1, keepdims=True)
    applies = known > 0
    left_out = np.isfinite(held_out) & (known != 0)
    checked = (left_out & applies).sum(axis=0) >= least
    weights = (left_out & checked).astype(np.float64)
    filled = np.where(left_out, held_out, 0.0)
    counts = np.maximum(weights.sum(axis=0), 1.0)
    usual = (float((weights * applies).sum()) + 0.5) / (float(weights.sum()) + 1.0)
    targets = ((weights * applies).sum(axis=0) + usual) / (counts + 1.0)
    offsets, likelihoods = np.zeros((len(_LOG_SLOPES), len(checked))), np.zeros((len(_LOG_SLOPES), len(checked)))
    before = None
    for place, slope in enumerate(exp(_LOG_SLOPES).tolist()):
        before = offsets[place] = offsets_at(slope * filled, targets, weights, checkpoint, before)
        right = _expit(np.where(applies, 1.0, -1.0) * (slope * filled + offsets[place]))
        likelihoods[place] = (weights * log(np.maximum(right, _LEAST))).sum(axis=0)
    shared = int(likelihoods.sum(axis=1).argmax())
    far = 0.5 * ((_LOG_SLOPES - _LOG_SLOPES[shared]) / _LOG_SLOPE_SPREAD) ** 2
    own = (likelihoods - far[:, None]).argmax(axis=0)
    own[~checked] = shared
    every = np.arange(len(checked))
    slopes = exp(_LOG_SLOPES)[own]
    log_likelihood = float(likelihoods[own, every].sum()) / max(1.0, float(weights.sum()))
    shares = (applies.sum(axis=0)) / ((known != 0).sum(axis=0) + 1.0)
    if not len(scores):
        # a label without a check has its share among the documents that its solutions left out
        of_share = offsets_at(slopes * filled, shares, left_out.astype(np.float64), checkpoint)
        found = np.where(checked, offsets[own, every], of_share)
        return LabelFit(slopes, found, shares, log_likelihood)
    margins = slopes * scores + offsets[own, every]
    by_answers = _expit(margins).mean(axis=0)
    drawn = np.full(len(known), Draw.RANDOM, np.int8) if drawn is None else drawn
    counted = _counted(known * left_out * checked, by_answers, drawn)
    if not counted.all():
        seen = (left_out & counted[:, None]).astype(np.float64)
        of_sample = ((seen * applies).sum(axis=0) + by_answers) / (seen.sum(axis=0) + 1.0)
        by_answers = _expit(margins + logit(np.clip(of_sample, _LEAST, 1 - _LEAST)) - logit(targets)).mean(axis=0)
    fractions = np.where(checked, by_answers, shares)
    found = offsets_at(slopes * scores, fractions, np.ones(scores.shape), checkpoint)
    return LabelFit(slopes, found, fractions, log_likelihood)


def _counted(known: NDArray[np.int8], fractions: Vector, drawn: NDArray[np.int8]) -> NDArray[np.bool_]:
    """shape (n_labeled,): whether documents have labels as often as others of their scores, given the ``fractions``
    that all documents show.

    Those that were found by their labels have not. Those of unknown origin have, unless chance hardly gives their
    numbers of labels: by the sum of squares of what numbers are off by, in standard deviations. It is a chi-squared of
    as many degrees of freedom as there are labels where none is rare. With many rare ones it is larger: of random
    documents 5 of 18 such sets were taken for a choice, which changed their fractions by next to nothing.
    """
    own = known[drawn == Draw.UNKNOWN]
    numbers = (own != 0).sum(axis=0)
    off = (own > 0).sum(axis=0) - numbers * fractions
    surprise = float((off * off / np.maximum(numbers * fractions * (1.0 - fractions), _LEAST)).sum())
    freedom = np.count_nonzero(numbers)
    by_chance = surprise <= freedom + _SURPRISING * np.sqrt(2.0 * freedom)
    return np.asarray((drawn != Draw.FOUND) & (by_chance | (drawn != Draw.UNKNOWN)))


def _expit(logits: Matrix) -> Matrix:
    """As core.numerics.elementary.expit, of logits without NaN, in a fraction of its time."""
    return np.asarray(1.0 / (1.0 + exp(-logits)))


def offsets_at(
    margins: Matrix,
    targets: Vector,
    weights: Matrix,
    checkpoint: Checkpoint = lambda: None,
    guess: Vector | None = None,
) -> Vector:
    """The offsets, shape (n_labels,), with which ``expit(margins + offset)``, shape (n_rows, n_labels), has the mean
    ``targets``, strictly between 0 and 1, over the rows by their ``weights``; 0 for columns without weight.

    Newton's method, from a ``guess`` or 0, within a bracket that bisection narrows where a step leaves it.
    """
    totals = weights.sum(axis=0)
    sought = (totals > 0) & (targets > 0)
    goal = np.clip(targets, _LEAST, 1 - _LEAST)
    span = np.abs(margins).max(axis=0, initial=0.0) + 40.0
    low, high, found = -span, span.copy(), np.zeros(len(targets)) if guess is None else guess
    for _ in range(_ROUNDS):
        means, slopes = np.zeros(len(targets)), np.zeros(len(targets))
        height = max(1, _AT_ONCE // len(targets))
        for start in range(0, len(margins), height):
            part = slice(start, start + height)
            probabilities = _expit(margins[part] + found)
            means += (weights[part] * probabilities).sum(axis=0)
            slopes += (weights[part] * probabilities * (1 - probabilities)).sum(axis=0)
            checkpoint()
        off = means / np.maximum(totals, _LEAST) - goal
        if float(np.abs(off * sought).max(initial=0.0)) < _NEAR:
            break
        low, high = np.where(off < 0, found, low), np.where(off > 0, found, high)
        step = found - off * totals / np.maximum(slopes, _LEAST)
        found = np.where((step > low) & (step < high), step, (low + high) / 2)
    return np.where(sought, found, np.where(totals > 0, -span, 0.0))


def best_thresholds(probabilities: Matrix) -> Vector:
    """The thresholds, shape (n_labels,), from which giving a label has the largest expected F1 over rows of these
    calibrated probabilities, shape (n_rows, n_labels); of no rows a half.

    F1 over the k likeliest rows is expected to be ``2 Σ_k p / (k + Σ p)``; the best k takes all rows with at least half
    the largest value. Source: Lipton, Elkan & Naryanaswamy, Optimal thresholding of classifiers to maximize F1, 2014.
    """
    if not len(probabilities):
        return np.full(probabilities.shape[1], 0.5)
    ranks = np.arange(1, len(probabilities) + 1)
    best = np.empty(probabilities.shape[1])
    for column in range(probabilities.shape[1]):
        likeliest = np.sort(probabilities[:, column])[::-1]
        expected = 2 * np.cumsum(likeliest) / (ranks + likeliest.sum())
        best[column] = expected.max() / 2
    return best
