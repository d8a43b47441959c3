"""What speaks for a fraction of positive documents: each source a small pure function, in nats, up to a constant.

Conventions: ``fractions`` r of shape (n,) ascend strictly between 0 and 1; scores are those of a transductive solution for each of them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logit

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SLOPE = 2.0
"""of the logistic function by which a held-out score counts: at the margin, 1, a label is taken to be right with odds of 7.4"""
WORTH = 5.0
"""how many independent documents the separation of the unlabeled ones is worth: few, since in many dimensions anything can be separated somewhat"""
LEAST = 0.01
"""a predicted fraction nearer to 0 or 1 says no more than this one"""
_EVEN_ERROR, _FREEDOM = 0.3, 3.0
"""in logits: how far the supervised model's share of a class is off after as many labels of each class, as the scale of a heavy-tailed law"""
_UNEVEN_ERROR = 2.0
"""and after labels of uneven counts: the class of more labels gets nearly everything"""
_SLACK = 1.1
"""class counts within this ratio, or one label apart, look designed"""


def is_balanced(counts: NDArray[np.integer[Any]]) -> bool:
    """Whether somebody labeled so many of each class, so that the counts say nothing of the fractions: they are (nearly) equal.

    Counts drawn at random look like this only where the classes are about as frequent, and there nothing is lost.
    """
    return bool(counts.max() - counts.min() <= 1 or counts.max() <= _SLACK * counts.min())


def from_counts(fractions: Vector, count: int, total: int, n_classes: int, informative: bool) -> Vector:
    """A prior worth two labels, shared evenly by ``n_classes`` classes, with the ``count`` of ``total`` labels if they are ``informative``.

    The density of one fraction under a Dirichlet distribution, by its logit, so that a sum over evenly spaced logits is an integral. For two classes
    the prior is flat; for more it does not insist on even fractions, as one that is flat over their simplex would.
    """
    positive = 2.0 / n_classes
    negative = 2.0 - positive
    if informative:
        positive, negative = positive + count, negative + total - count
    return np.asarray(positive * np.log(fractions) + negative * np.log1p(-fractions))


def from_prediction(fractions: Vector, predicted: float, near: bool) -> Vector:
    """What a model predicts that was not asked for any fraction: a supervised one ``near`` the truth after as many labels of each class only.

    Even labels leave no class an advantage, so that the shares are near the truth, but for outliers: a threshold that few labels put into the
    midst of all scores. So the law is Student's with three degrees of freedom. Uneven ones make the classes of many labels swallow the others.
    The shares of a mixture, of which the labels say nothing, are near either way.
    """
    off = logit(fractions) - logit(np.clip(predicted, LEAST, 1 - LEAST))
    if near:
        return np.asarray(-0.5 * (_FREEDOM + 1) * np.log1p((off / _EVEN_ERROR) ** 2 / _FREEDOM))
    return np.asarray(-0.5 * (off / _UNEVEN_ERROR) ** 2)


def from_held_out(scores: Vector, y: Vector, expected: float = 0.5) -> Vector:
    """Logistic log-likelihood of held-out labels, shape (n,): ``scores`` of shape (n, n_labeled), ``y`` -1 or +1.

    Both classes weigh the same in total, and no label counts for more than one. A solution that must call too many documents positive calls
    held-out negative ones positive, and the reverse. As a score of 0 stands for even odds where the class has the share that is ``expected``, a
    sample with as much of both sides has other odds there, by the logit of that share; without it a class of many would be taken for half of all.
    """
    positive, negative = np.count_nonzero(y > 0), np.count_nonzero(y < 0)
    weights = min(positive, negative) / np.where(y > 0, positive, negative)
    return np.asarray(-(weights * np.logaddexp(0.0, -y * (SLOPE * scores - logit(expected)))).sum(axis=1))


def from_held_out_at_priors(scores: Matrix, class_indices: NDArray[np.integer[Any]], fractions: Vector) -> float:
    """Log-likelihood of held-out labels, each class against all others, where the labels of a class weigh together what its ``fractions`` say.

    ``scores`` of shape (n_labeled, n_columns), one column for two classes; ``fractions`` of shape (n_classes,). Of labels that were picked evenly,
    those of a small class count as much as those of a large one; so weighed, a mistake costs what it costs among the documents.
    """
    logits = log_softmax(SLOPE * (scores * [-0.5, 0.5] if scores.shape[1] == 1 else scores), axis=1)
    weights = fractions / np.maximum(np.bincount(class_indices, minlength=len(fractions)), 1) * len(class_indices)
    return float(weights[class_indices] @ logits[np.arange(len(class_indices)), class_indices])


def from_separation(fractions: Vector, objectives: Vector, n_classes: int) -> Vector:
    """How well the unlabeled documents fall apart at each fraction, shape (n,).

    J of a solution without features, the best constant score, is ``2 r (1 − r)`` on unlabeled rows whose labels are fixed; J over that is the share
    that the solution leaves unexplained, at equal footing for all r where J itself falls towards r = 0 and 1. As the log-likelihood of
    a normal model: ``−WORTH log share``. It is an argument about two clusters; of more classes the rest is many, and they share its worth as they
    share that of the prior.
    """
    return np.asarray(-WORTH * 2.0 / n_classes * np.log(objectives / (2.0 * fractions * (1.0 - fractions))))
