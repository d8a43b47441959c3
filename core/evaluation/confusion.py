"""The confusion matrix, with accuracy, precision, recall and F1.

Symbols, for a label: ``tp`` documents have it and were given it, ``fp`` were given it and have another, ``fn`` have it
and were given another. Precision is tp / (tp + fp), recall tp / (tp + fn), F1 their harmonic mean, 2 tp / (2 tp + fp +
fn). Where the denominator is 0 the value is NaN: the precision of a label that was never given, the recall of one that
no document has, the F1 of one that is neither.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ClassIndices = NDArray[np.integer[Any]]
Vector = NDArray[np.float64]


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
    macro_precision: float
    """mean over the labels that documents have or were given, NaN counted as 0; so for ``macro_recall``"""
    macro_recall: float
    macro_f1: float
    """mean over the labels that documents have or were given"""
    micro_f1: float
    """F1 of the sums of tp, fp and fn over all labels: the accuracy, as every document has one label and is given
    one"""


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
        precision, recall, f1 = _ratios(hits, given), _ratios(hits, support), _ratios(2 * hits, support + given)
        used = support + given > 0
        return Agreement(
            support,
            given,
            precision,
            recall,
            f1,
            accuracy=float(hits.sum() / support.sum()),
            macro_precision=float(np.nan_to_num(precision[used]).mean()),
            macro_recall=float(np.nan_to_num(recall[used]).mean()),
            macro_f1=float(f1[used].mean()),
            micro_f1=float(2 * hits.sum() / (support.sum() + given.sum())),
        )


def _ratios(parts: NDArray[np.int64], wholes: NDArray[np.int64]) -> Vector:
    """Element by element; NaN where the denominator is 0."""
    return np.asarray(np.divide(parts, wholes, out=np.full(len(parts), np.nan), where=wholes > 0))
