"""Agreement of sets of labels: by label, micro, macro, weighted and by document, with scikit-learn's names and values.

Symbols, for a label: ``tp`` documents have it and were given it, ``fp`` were given it and do not have it, ``fn`` have
it and were not given it. Where a denominator is 0 the value is 0, as scikit-learn's ``zero_division=0``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.evaluation.measures import ratios

Vector = NDArray[np.float64]
Sets = NDArray[np.bool_]


class Measures(NamedTuple):
    """Precision, recall and F1 of one average."""

    precision: float
    recall: float
    f1: float


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


class LabelCounts:
    """Counts of agreement, batch by batch."""

    def __init__(self, n_labels: int) -> None:
        self._tp, self._given, self._support = (np.zeros(n_labels, np.int64) for _ in range(3))
        self._documents = self._exact = 0
        self._samples = np.zeros(3)

    def add(self, truth: Sets, given: Sets) -> None:
        """Count documents with the labels ``truth`` that were ``given`` others, both of shape (n_documents,
        n_labels)."""
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
    """The same, counted batch by batch."""

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
