"""The class fractions of three classes and more: answers of two models counted, and numbers of labels that may be a
random sample.

Nothing is solved at one fraction or another: docs/auto.md has the derivation.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.evaluation.training_warnings import RANDOM_LABELS
from core.numerics.elementary import exp, expit_of, log, log_of, log_sum_exp
from core.selection.log_evidence import PLANNED_CLASSES

Vector = NDArray[np.float64]
Labels = NDArray[np.intp]
Counts = NDArray[np.int64]

_CONTRADICTED = 0.5
"""documents that one counts as which another model gives another class"""
_OF_EACH = 5.0
"""documents of each class that are added to those that are counted"""
_WORTHS, _MOST_OF_ANSWERS = np.array([0.5, 1.0, 2.0, 4.0, 8.0]), 4
"""random labels of each class that a guess may be worth; and how many of these worths, the least ones, one may have
that rests on answers"""
_LEAST_DOUBT = 0.1
"""least disagreement beyond chance of two models, which may be wrong of the same documents"""
SHARED = 0.5
"""share of the documents of a class by either model that both give it: below, its fraction hangs on a guess"""


class Answers(NamedTuple):
    """Class fractions by models' answers on the unlabeled documents."""

    fractions: Vector
    """shape (n_classes,)"""
    kappa: float
    """Cohen's kappa, at least 0: how far the models agree beyond chance"""
    shared: Vector
    """shape (n_classes,): of the documents that either model gives a class, the share that both do"""

    @property
    def centre(self) -> Vector:
        """The fractions that they make likely, shape (n_classes,): the less the models agree, the likelier the answers
        say nothing, and the classes are even.
        """
        idle = (1.0 - self.kappa) ** 4
        return (1.0 - idle) * self.fractions + idle / len(self.fractions)

    @property
    def worth(self) -> float:
        """The random labels that they are worth."""
        return RANDOM_LABELS / max(_LEAST_DOUBT, 1.0 - self.kappa)


def counted(own: Labels, other: Labels, n_classes: int, *, as_good: bool) -> Answers:
    """The answers of two models, each of shape (n_unlabeled,), counted.

    Those of the first count, and half where the other contradicts, if that is ``as_good``.
    """
    of_own, of_other, of_both = (np.bincount(labels, minlength=n_classes) for labels in (own, other, own[own == other]))
    documents = of_own - (1.0 - _CONTRADICTED) * as_good * (of_own - of_both) + _OF_EACH
    shared = of_both / np.maximum(of_own + of_other - of_both, 1)
    return Answers(documents / documents.sum(), _kappa(of_own, of_other, of_both), shared)


def _kappa(of_own: Counts, of_other: Counts, of_both: Counts) -> float:
    """Cohen's kappa, at least 0: how far two models agree beyond chance."""
    n_documents = max(1, int(of_own.sum()))
    chance = int((of_own * of_other).sum()) / n_documents**2
    return max(0.0, (float(of_both.sum()) / n_documents - chance) / (1.0 - chance)) if chance < 1 else 0.0


class Fractions(NamedTuple):
    """The posterior of the fractions of all classes."""

    means: Vector
    """shape (n_classes,), summing to 1"""
    deviations: Vector
    """shape (n_classes,)"""
    sampled: bool
    """whether numbers of labels were used as a random sample that is large enough to settle them"""


def posterior_of_classes(answers: Answers, random: Counts, unknown: Counts, others: int = 0) -> Fractions:
    """The posterior by answers and the numbers of labels of each class, both of shape (n_classes,): of a ``random``
    sample, and of ``unknown`` origin. ``others`` are labels that are of neither.

    The prior of a sample is Dirichlet's, around even fractions, the answers, or midway. Around which, and worth how
    many random labels, is what the numbers of labels make likely (empirical Bayes). A small sample beside other labels,
    on which the answers rest, cannot say so: it is around the answers. Labels of unknown origin belong to the sample.
    Only of three classes, where numbers alone do not show a plan, they may be anybody's choice as well: then all
    numbers are as likely.
    """
    if len(unknown) >= PLANNED_CLASSES:
        random, unknown = random + unknown, np.zeros_like(unknown)
    small = bool(random.sum() < min(RANDOM_LABELS, others))
    without = _sampled(answers, random, small) if random.any() else _answered(answers)
    if not unknown.any():
        return _posterior(without, not small and bool(random.any()))
    whole = _sampled(answers, random + unknown, small)
    chosen = without.log_likelihood + _log_polya(np.ones(len(unknown)), unknown)
    sampled = expit_of(whole.log_likelihood - chosen)
    both = _Mixture(
        np.concatenate([sampled * whole.weights, (1.0 - sampled) * without.weights]),
        np.concatenate([whole.means, without.means]),
        np.concatenate([whole.labels, without.labels]),
        0.0,
    )
    return _posterior(both, not small and (bool(random.any()) or sampled > 0.5))


class _Mixture(NamedTuple):
    """A mixture of Dirichlet distributions."""

    weights: Vector
    """shape (n,), summing to 1"""
    means: NDArray[np.float64]
    """shape (n, n_classes)"""
    labels: Vector
    """shape (n,): the labels that each is worth"""
    log_likelihood: float


def _answered(answers: Answers) -> _Mixture:
    """The distribution by the answers alone."""
    return _Mixture(np.ones(1), answers.centre[None, :], np.full(1, float(len(answers.fractions))), 0.0)


def _sampled(answers: Answers, counts: Counts, small: bool) -> _Mixture:
    """The posterior by answers and a random sample with these ``counts``; of a ``small`` one around the answers
    alone.
    """
    n_classes, n_labels = len(counts), counts.sum()
    said, even, own = answers.centre, np.full(n_classes, 1.0 / n_classes), _WORTHS[:_MOST_OF_ANSWERS]
    priors = answers.worth * said[None, :]
    if not small:
        guesses = [(even, _WORTHS), (said, own), ((even + said) / 2, own)]
        priors = np.concatenate([priors, *(n_classes * worths[:, None] * centre for centre, worths in guesses)])
    logs, worths = np.array([_log_polya(prior, counts) for prior in priors]), priors.sum(axis=1)
    total = float(log_sum_exp(logs[None, :], axis=1)[0])
    means = (counts + priors) / (n_labels + worths)[:, None]
    return _Mixture(exp(logs - total), means, n_labels + worths, total - log_of(float(len(logs))))


def _posterior(mixture: _Mixture, sampled: bool) -> Fractions:
    weights = mixture.weights[:, None]
    means = (weights * mixture.means).sum(axis=0)
    own = mixture.means * (1.0 - mixture.means) / (mixture.labels[:, None] + 1.0)
    variances = (weights * (own + (mixture.means - means) ** 2)).sum(axis=0)
    return Fractions(means / means.sum(), np.sqrt(variances), sampled)


def _log_polya(prior: Vector, counts: Counts) -> float:
    """Log-probability of labels in their order, as many of each class as ``counts``, where the fractions have
    Dirichlet's distribution with these parameters (Pólya's urn).
    """
    return sum(map(_log_rising, prior.tolist(), counts.tolist())) - _log_rising(float(prior.sum()), int(counts.sum()))


def _log_rising(first: float, count: int) -> float:
    """Logarithm of the product of so many factors, each larger by 1 than the last."""
    return float(log(np.arange(count) + np.float64(first)).sum())
