"""Measures of predictions: the confusion matrix with accuracy, precision, recall and F1; the same of documents that may
have several labels; precision by recall of a ranking; calibration error, Brier score and log loss of probabilities, and
labels to doubt by them.

Symbols, for a label: ``tp`` documents have it and were given it, ``fp`` were given it and do not have it, ``fn`` have
it and were not given it. Precision is tp / (tp + fp), recall tp / (tp + fn), F1 their harmonic mean, 2 tp / (2 tp + fp
+ fn). Where the denominator is 0 the value is NaN: the precision of a label that was never given, the recall of one
that no document has, the F1 of one that is neither. Of several labels it is 0, as scikit-learn's ``zero_division=0``;
these have scikit-learn's names and values.

Documents of equal score have no order among them: precision and recall are defined where a run of equal scores ends.

Of the documents given a class with 80 %, 80 % should be of it. Source of the doubts: Northcutt, Jiang & Chuang,
Confident learning: estimating uncertainty in dataset labels, 2021 (predictions out of sample; here ranked by the margin
between the label and the likeliest other one).
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.numerics.elementary import Vector

ClassIndices = NDArray[np.integer[Any]]


class Measures(NamedTuple):
    """Precision, recall and F1 of one average."""

    precision: float
    recall: float
    f1: float


class Agreement(NamedTuple):
    """Agreement of the given labels with the labels of documents; shapes (n_labels,)."""

    support: NDArray[np.int64]
    """number of documents that have the label"""
    given: NDArray[np.int64]
    """number of documents that were given it"""
    precision: Vector
    recall: Vector
    f1: Vector
    accuracy: float
    """also F1 of the sums of tp, fp and fn over all labels, as every document has one label and is given one"""
    macro: Measures
    """mean over the labels that documents have or were given, NaN counted as 0"""


class Confusion:
    """The confusion matrix, counted batch by batch."""

    def __init__(self, n_classes: int) -> None:
        """``n_classes`` labels can be given; documents may have labels beyond them, always predicted wrongly."""
        self.counts = np.zeros((n_classes, n_classes), np.int64)
        """shape (n_labels, n_labels): a row for each label that documents have, a column for each that they were
        given"""

    def add(self, truth: ClassIndices, answer: ClassIndices) -> None:
        """Count documents that have the labels ``truth`` and were given ``answer``, each of shape (n_documents,);
        answers lie below ``n_classes``.
        """
        if not len(truth):
            return
        beyond = int(truth.max()) + 1 - len(self.counts)
        if beyond > 0:
            self.counts = np.pad(self.counts, (0, beyond))
        np.add.at(self.counts, (truth, answer), 1)

    def agreement(self) -> Agreement:
        """The measures for each label and on the whole; at least one document must have been counted."""
        hits = np.diag(self.counts)
        support, given = self.counts.sum(axis=1), self.counts.sum(axis=0)
        precision, recall, f1 = ratios(hits, given), ratios(hits, support), ratios(2 * hits, support + given)
        used = support + given > 0
        return Agreement(
            support,
            given,
            precision,
            recall,
            f1,
            accuracy=float(hits.sum() / support.sum()),
            macro=Measures(*(float(np.nan_to_num(each[used]).mean()) for each in (precision, recall, f1))),
        )


def ratios(parts: NDArray[np.int64], wholes: NDArray[np.int64], empty: float = math.nan) -> Vector:
    """Element by element; ``empty`` where the denominator is 0."""
    return np.asarray(np.divide(parts, wholes, out=np.full(len(parts), empty), where=wholes > 0))


class Ranking(NamedTuple):
    """A ranking, from the top down, at the runs of equal scores that have documents of the class; there is at least
    one.

    Shapes (n_runs,).
    """

    before: NDArray[np.int64]
    """number of documents above the run"""
    taken: NDArray[np.int64]
    """number of documents down to the end of the run"""
    hits: NDArray[np.int64]
    """number of these that are of the class"""

    @property
    def break_even(self) -> float:
        """Break-even point: the precision where it equals the recall, among the top documents, as many as are of the
        class.

        If these end within a run of equal scores, the run counts by its share of the class: the mean over all its
        orders.
        """
        n_positive = int(self.hits[-1])
        run = int(np.searchsorted(self.taken, n_positive))
        hits = int(self.hits[run - 1]) if run else 0
        share = (int(self.hits[run]) - hits) / int(self.taken[run] - self.before[run])
        return (hits + max(0, n_positive - int(self.before[run])) * share) / n_positive

    @property
    def average_precision(self) -> float:
        """The mean of the precisions at the ends of runs, weighted by the recall that each run adds."""
        return float((np.diff(self.hits, prepend=0) * (self.hits / self.taken)).sum() / self.hits[-1])

    def curve(self, most: int) -> NDArray[np.float64]:
        """At most ``most`` points of the precision by recall, shape (n_points, 2), recall first: where evenly spaced
        numbers of hits are reached.
        """
        n_positive = int(self.hits[-1])
        wanted = np.linspace(1, n_positive, min(most, n_positive)).round()
        runs = np.unique(np.searchsorted(self.hits, wanted))
        return np.column_stack([self.hits[runs] / n_positive, self.hits[runs] / self.taken[runs]])


def ranked(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> Ranking | None:
    """The ranking by scores, highest first, with the documents of the class ``positive``, both of shape (n_documents,);
    None if none is positive.

    Sorting scores takes a third of the time of sorting positions by them; the places of the class's scores are then
    looked up.
    """
    if not positive.any():
        return None
    runs, counts = np.unique(scores[positive], return_counts=True)
    ascending, n = np.sort(scores), len(scores)
    before = n - np.searchsorted(ascending, runs, "right")
    taken = n - np.searchsorted(ascending, runs, "left")
    return Ranking(before[::-1], taken[::-1], np.cumsum(counts[::-1]))


BINS = 15
_LEAST = float(np.finfo(np.float64).eps)
"""least probability in the log loss, which would be infinite for 0"""


class Bin(NamedTuple):
    """The documents with a probability of the likeliest class from ``start`` to ``end``; without any, means are NaN."""

    start: float
    end: float
    documents: int
    confidence: float
    """mean probability of the likeliest class"""
    accuracy: float
    """share of the documents that are of it"""


class Reliability:
    """Probabilities compared with labels, batch by batch."""

    def __init__(self) -> None:
        self._counts = np.zeros(BINS, np.int64)
        self._confidence, self._hits = np.zeros(BINS), np.zeros(BINS)
        self._squares = self._logs = 0.0

    @classmethod
    def of(cls, probabilities: NDArray[np.float64], truth: NDArray[np.integer[Any]]) -> Self:
        """The comparison of one batch; see ``add``."""
        reliability = cls()
        reliability.add(probabilities, truth)
        return reliability

    def add(self, probabilities: NDArray[np.float64], truth: NDArray[np.integer[Any]]) -> None:
        """Compare ``probabilities`` of shape (n_documents, n_classes) with the labels ``truth``, shape (n_documents,).

        A label beyond the classes has a probability of 0.
        """
        n_classes = probabilities.shape[1]
        likeliest, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
        bins = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
        self._counts += np.bincount(bins, minlength=BINS)
        self._confidence += np.bincount(bins, confidence, BINS)
        self._hits += np.bincount(bins, likeliest == truth, BINS)
        own = np.where(truth < n_classes, probabilities[np.arange(len(truth)), np.minimum(truth, n_classes - 1)], 0.0)
        squares = np.einsum("ij,ij->i", probabilities, probabilities) - 2 * own + 1
        self._squares += float(squares.sum()) / (2 if n_classes == 2 else 1)
        self._logs -= float(np.log(np.maximum(own, _LEAST)).sum())

    @property
    def expected_error(self) -> float:
        """Expected calibration error of the likeliest class, over bins of equal width (Guo et al., 2017)."""
        return float(np.abs(self._hits - self._confidence).sum() / self._counts.sum())

    @property
    def brier(self) -> float:
        """Brier score: the mean squared distance of the probabilities from 1 for the label and 0 for the others.

        Of two classes it is that of one of them, from 0 to 1; of more classes the sum over all, from 0 to 2."""
        return self._squares / int(self._counts.sum())

    @property
    def log_loss(self) -> float:
        """Log loss: the mean of −ln of the label's probability, bounded from below by the machine epsilon."""
        return self._logs / int(self._counts.sum())

    @property
    def bins(self) -> list[Bin]:
        """All BINS bins, from 0 to 1."""
        counts = np.where(self._counts > 0, self._counts, np.nan)
        means = zip(
            self._counts.tolist(), (self._confidence / counts).tolist(), (self._hits / counts).tolist(), strict=True
        )
        return [Bin(place / BINS, (place + 1) / BINS, *found) for place, found in enumerate(means)]


def doubtful(probabilities: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """The rows with a likelier class than the label, shape (n_doubtful,), the one whose label is least likely first, of
    equals the first row.

    ``probabilities`` have shape (n, n_classes), ``labels`` are class indices, shape (n,). Where every label is as often
    wrong, and then is any other class, the probability that one is wrong falls with its own probability, however that
    of the others is shared among them.
    """
    own = probabilities[np.arange(len(labels)), labels]
    rows = np.flatnonzero(own < probabilities.max(axis=1, initial=0.0))
    return rows[np.argsort(own[rows], kind="stable")]


Sets = NDArray[np.bool_]


class LabelAgreement(NamedTuple):
    """Agreement of the given labels with the labels of documents; shapes (n_labels,)."""

    support: NDArray[np.int64]
    """number of documents that have the label"""
    given: NDArray[np.int64]
    """number of documents that were given it"""
    precision: Vector
    recall: Vector
    f1: Vector
    micro: Measures
    """of the sums of tp, fp and fn over all labels"""
    macro: Measures
    """mean over the labels"""
    weighted: Measures
    """mean over the labels by their support"""
    samples: Measures
    """mean over the documents, of each by its own labels"""
    subset_accuracy: float
    """share of the documents that were given all their labels and no other"""
    hamming_loss: float
    """share of all pairs of document and label that are wrong"""


class LabelConfusion:
    """Counts of agreement, batch by batch."""

    def __init__(self, n_labels: int) -> None:
        self._tp, self._given, self._support = (np.zeros(n_labels, np.int64) for _ in range(3))
        self._documents = self._exact = 0
        self._samples = np.zeros(3)

    def add(self, truth: Sets, given: Sets) -> None:
        """Count documents with the labels ``truth`` that were ``given`` others, both of shape (n_documents,
        n_labels).

        There may be more labels than before, which no document so far has or was given.
        """
        self._tp, self._given, self._support = (
            np.pad(counts, (0, truth.shape[1] - len(counts))) for counts in (self._tp, self._given, self._support)
        )
        right = truth & given
        self._tp += right.sum(axis=0)
        self._given += given.sum(axis=0)
        self._support += truth.sum(axis=0)
        self._documents += len(truth)
        self._exact += int((truth == given).all(axis=1).sum())
        tp, n_given, n_true = right.sum(axis=1), given.sum(axis=1), truth.sum(axis=1)
        parts = (ratios(tp, n_given, 0.0), ratios(tp, n_true, 0.0), ratios(2 * tp, n_given + n_true, 0.0))
        self._samples += [float(part.sum()) for part in parts]

    def agreement(self) -> LabelAgreement:
        """The measures for each label and on the whole."""
        tp, given, support = self._tp, self._given, self._support
        by_label = (ratios(tp, given, 0.0), ratios(tp, support, 0.0), ratios(2 * tp, given + support, 0.0))
        sums = [np.array([int(each.sum())]) for each in (tp, given, support)]
        pooled = (
            ratios(sums[0], sums[1], 0.0),
            ratios(sums[0], sums[2], 0.0),
            ratios(2 * sums[0], sums[1] + sums[2], 0.0),
        )
        shares = support / max(1, int(support.sum()))
        n_documents = max(1, self._documents)
        wrong = int((given + support - 2 * tp).sum())
        return LabelAgreement(
            support,
            given,
            *by_label,
            micro=Measures(*(float(each[0]) for each in pooled)),
            macro=Measures(*(float(each.mean()) for each in by_label)),
            weighted=Measures(*(float((each * shares).sum()) for each in by_label)),
            samples=Measures(*(self._samples / n_documents).tolist()),
            subset_accuracy=self._exact / n_documents,
            hamming_loss=wrong / (n_documents * len(tp)),
        )


class LabelRanking(NamedTuple):
    """How well scores rank the labels of each document, means over the documents."""

    coverage_error: float
    """how far down the labels one must go to have all that apply"""
    label_ranking_average_precision_score: float
    label_ranking_loss: float
    """share of the pairs of a label that applies and one that does not that are in the wrong order"""


class RankingCounts:
    """Ranks of the labels of each document, counted batch by batch."""

    def __init__(self) -> None:
        self._sums, self._documents = np.zeros(3), 0

    def add(self, truth: Sets, scores: Vector) -> None:
        """Count documents with the labels ``truth`` and these ``scores``, both of shape (n_documents, n_labels)."""
        n_labels = truth.shape[1]
        for applies, row in zip(truth, scores, strict=True):
            n_true = int(applies.sum())
            self._documents += 1
            if n_true in (0, n_labels):
                self._sums += [float(n_labels * bool(n_true)), 1.0, 0.0]
                continue
            own = row[applies]
            ranks = (row >= own[:, None]).sum(axis=1)
            among = (own >= own[:, None]).sum(axis=1)
            wrong = (row[~applies] >= own[:, None]).sum()
            self._sums += [
                float(ranks.max()),
                float((among / ranks).mean()),
                float(wrong) / (n_true * (n_labels - n_true)),
            ]

    def ranking(self) -> LabelRanking:
        """The means."""
        return LabelRanking(*(self._sums / max(1, self._documents)).tolist())
