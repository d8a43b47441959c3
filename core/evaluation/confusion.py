"""Which labels were taken for which, and what follows from that.

Symbols: of a label, ``tp`` documents have it and were given it, ``fp`` were given it and have another, ``fn`` have it and were given another.
Precision is tp / (tp + fp), recall tp / (tp + fn), F1 their harmonic mean, 2 tp / (2 tp + fp + fn). A fraction of nothing is NaN: the precision
of a label that was never given, the recall of one that no document has, the F1 of one that is neither.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ClassIndices = NDArray[np.integer[Any]]
Vector = NDArray[np.float64]


class Agreement(NamedTuple):
    """How far the labels that were given agree with those that documents have; shapes (n_labels,)."""

    support: NDArray[np.int64]
    """documents that have the label"""
    given: NDArray[np.int64]
    """documents that were given it"""
    precision: Vector
    recall: Vector
    f1: Vector
    accuracy: float
    macro_precision: float
    """the mean over the labels that documents have or were given, where a precision of nothing counts as 0; so for ``macro_recall``"""
    macro_recall: float
    macro_f1: float
    """the mean over the labels that documents have or were given"""
    micro_f1: float
    """of the sums of tp, fp and fn over all labels; as every document has one label and is given one, it is the accuracy"""


class Confusion:
    """How many documents of each label were given which, counted batch after batch."""

    def __init__(self, n_classes: int) -> None:
        """``n_classes`` can be given; documents may have labels beyond them, which are never right."""
        self.counts = np.zeros((n_classes, n_classes), np.int64)
        """shape (n_labels, n_labels): a row a label that documents have, a column one that they were given"""

    def add(self, truth: ClassIndices, answer: ClassIndices) -> None:
        """Count documents that have the labels ``truth`` and were given ``answer``, each of shape (n_documents,); answers lie below ``n_classes``."""
        if not len(truth):
            return
        beyond = int(truth.max()) + 1 - len(self.counts)
        if beyond > 0:
            self.counts = np.pad(self.counts, (0, beyond))
        np.add.at(self.counts, (truth, answer), 1)

    def agreement(self) -> Agreement:
        """What follows for each label and on the whole; at least one document must have been counted."""
        hits = np.diag(self.counts)
        support, given = self.counts.sum(axis=1), self.counts.sum(axis=0)
        precision, recall, f1 = _shares(hits, given), _shares(hits, support), _shares(2 * hits, support + given)
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


def _shares(parts: NDArray[np.int64], wholes: NDArray[np.int64]) -> Vector:
    """NaN for a share of nothing."""
    return np.asarray(np.divide(parts, wholes, out=np.full(len(parts), np.nan), where=wholes > 0))
