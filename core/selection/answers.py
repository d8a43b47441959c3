"""The class fractions of three classes and more: answers of two models counted, and numbers of labels that may be a
random sample.

Nothing is solved at one fraction or another: docs/auto.md has the derivation.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import Vector, exp, expit_of, log_of
from core.selection.log_evidence import CHOSEN, PLANNED_CLASSES, log_polya
from core.selection.posterior import RANDOM_LABELS

Labels = NDArray[np.intp]
Counts = NDArray[np.int64]

_OF_EACH = 1.0
"""documents of each class that are added to those that are counted"""
_WORTHS = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
"""random labels of each class that even fractions may be worth"""
_OF_HALF = 60.0
"""random labels that answers are worth where half of the agreement that chance leaves open is there"""
_OF_MATRIX = 10.0
"""labels left out of each class that what is known of answers without them is worth"""
_ROUNDS = 100
"""rounds of expectation maximisation by which an adjusted estimate has converged"""
_LEAST_DOUBT = 0.1
"""least disagreement beyond chance of two models, which may be wrong of the same documents"""
SHARED = 0.5
"""share of the documents of a class by either model that both give it: below, its fraction hangs on a guess"""


class CountedAnswers(NamedTuple):
    """Class fractions by models' answers on the unlabeled documents."""

    fractions: Vector
    """shape (n_classes,)"""
    kappa: float
    """Cohen's kappa, at least 0: how far the models agree beyond chance"""
    shared: Vector
    """shape (n_classes,): of the documents that either model gives a class, the share that both do"""
    chosen: Counts
    """shape (n_classes,): labels of documents that were chosen since a model was unsure of them"""
    adjusted: Vector | None = None
    """shape (n_classes,): the centre after labels left out adjusted it"""

    @property
    def doubt(self) -> float:
        """How far the models disagree beyond chance."""
        return max(_LEAST_DOUBT, 1.0 - self.kappa)

    @property
    def idle(self) -> float:
        """Probability that the answers carry no information about the class fractions."""
        return self.doubt**3

    @property
    def centre(self) -> Vector:
        """The fractions that they make likely, shape (n_classes,); if they say nothing, the classes are even."""
        if self.adjusted is not None:
            return self.adjusted
        return (1.0 - self.idle) * self.fractions + self.idle / len(self.fractions)

    @property
    def prior(self) -> Vector:
        """The labels of each class that they are worth, shape (n_classes,): of models that agree by chance, one."""
        return max(1.0, _OF_HALF * self.kappa / self.doubt) * self.centre

    @property
    def learned(self) -> Vector:
        """The random labels of each class that the chosen ones are worth, shape (n_classes,).

        A model that knows nothing is unsure of all documents, so what it chooses is a random sample. One that knows
        most of them chooses what is least like these.
        """
        return np.asarray(self.doubt**2 * self.chosen)


def count_answers(own: Labels, other: Labels, n_classes: int, *, as_good: bool) -> CountedAnswers:
    """The answers of two models, each of shape (n_unlabeled,), counted.

    Those of the first count, and less where the other contradicts, if that is ``as_good``: the better the two agree
    elsewhere, the more a contradiction says.
    """
    of_own, of_other, of_both = (np.bincount(labels, minlength=n_classes) for labels in (own, other, own[own == other]))
    kappa = _kappa(of_own, of_other, of_both)
    documents = of_own - kappa * as_good * (of_own - of_both) + _OF_EACH
    shared = of_both / np.maximum(of_own + of_other - of_both, 1)
    return CountedAnswers(documents / documents.sum(), kappa, shared, np.zeros(n_classes, np.int64))


def adjust_answers(
    answers: CountedAnswers, own: Labels, truth: NDArray[np.integer[Any]], left_out: Labels
) -> CountedAnswers:
    """The answers with a centre that labels left out adjust: ``truth`` of them, and what the first model answers
    without them, both of shape (n_left_out,). Its answers on the unlabeled documents are ``own``.

    Under label shift the share of answers is ``Mᵀ π`` with the confusion matrix M. A row of M has a Dirichlet prior: an
    answer is right by the agreement beyond chance, and else any of those that are given. By it alone π is the share of
    answers. π is the mode of its posterior, by expectation maximisation. Beforehand it is the centre, by what that is
    worth, and answers count as much as there are labels left out, which tell M. Sources: Saerens, Latinne &
    Decaestecker 2002; Lipton, Wang & Smola 2018.
    """
    found = answers.centre
    share = (np.bincount(own, minlength=len(found)) + _OF_EACH) / (len(own) + _OF_EACH * len(found))
    matrix = _OF_MATRIX * (answers.kappa * np.eye(len(found)) + (1.0 - answers.kappa) * share)
    np.add.at(matrix, (truth, left_out), 1.0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        joint = found[:, None] * matrix
        documents = len(truth) * (joint * (share / joint.sum(axis=0))).sum(axis=1) + answers.prior
        found = documents / documents.sum()
    return answers._replace(adjusted=found)


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
    """whether numbers of labels settle them, as those of a random sample of 30 and more"""


def posterior_of_classes(answers: CountedAnswers, random: Counts, unknown: Counts) -> Fractions:
    """The posterior by answers and the numbers of labels of each class, both of shape (n_classes,): of a ``random``
    sample, and of ``unknown`` origin.

    The prior of a sample is Dirichlet's, around what the answers make likely, or around even fractions if these say
    nothing. Which of both it is, and how many labels even fractions are worth, is what the numbers make likely
    (empirical Bayes). Labels of unknown origin belong to the sample. Only of three classes, where numbers alone do not
    show a plan, they may be anybody's choice as well, by an urn with CHOSEN labels of each.
    """
    if len(unknown) >= PLANNED_CLASSES:
        random, unknown = random + unknown, np.zeros_like(unknown)
    without = _sampled(answers, random) if random.any() else _answered(answers)
    settled, enough = (bool(counts.sum() >= RANDOM_LABELS) for counts in (random, random + unknown))
    if not unknown.any():
        return _posterior(without, settled)
    whole = _sampled(answers, random + unknown)
    chosen = without.log_likelihood + log_polya(np.full(len(unknown), CHOSEN), unknown)
    sampled = expit_of(whole.log_likelihood - chosen)
    both = _Mixture(
        np.concatenate([sampled * whole.weights, (1.0 - sampled) * without.weights]),
        np.concatenate([whole.means, without.means]),
        np.concatenate([whole.labels, without.labels]),
        0.0,
    )
    return _posterior(both, settled or (enough and sampled > 0.5))


class _Mixture(NamedTuple):
    """A mixture of Dirichlet distributions."""

    weights: Vector
    """shape (n,), summing to 1"""
    means: NDArray[np.float64]
    """shape (n, n_classes)"""
    labels: Vector
    """shape (n,): the labels that each is worth"""
    log_likelihood: float


def _answered(answers: CountedAnswers) -> _Mixture:
    """The distribution by the answers, and labels that were chosen."""
    labels = answers.prior + answers.learned
    return _Mixture(np.ones(1), labels[None, :] / labels.sum(), np.full(1, float(len(labels))), 0.0)


def _sampled(answers: CountedAnswers, counts: Counts) -> _Mixture:
    """The posterior by answers and a random sample with these ``counts``."""
    n_classes, n_labels = len(counts), counts.sum()
    priors = np.vstack([np.tile(_WORTHS[:, None], n_classes), answers.prior]) + answers.learned
    beforehand = np.append(np.full(len(_WORTHS), answers.idle / len(_WORTHS)), 1.0 - answers.idle)
    logs, worths = np.array([log_polya(prior, counts) for prior in priors]), priors.sum(axis=1)
    weights = beforehand * exp(logs - logs.max())
    likelihood = float(logs.max()) + log_of(float(weights.sum()))
    means = (counts + priors) / (n_labels + worths)[:, None]
    return _Mixture(weights / weights.sum(), means, n_labels + worths, likelihood)


def _posterior(mixture: _Mixture, sampled: bool) -> Fractions:
    weights = mixture.weights[:, None]
    means = (weights * mixture.means).sum(axis=0)
    own = mixture.means * (1.0 - mixture.means) / (mixture.labels[:, None] + 1.0)
    variances = (weights * (own + (mixture.means - means) ** 2)).sum(axis=0)
    return Fractions(means / means.sum(), np.sqrt(variances), sampled)
