"""Ways to obtain labels: each a pure function of the true classes and a seed. Draws of one seed share the labels that
they have in common.

Conventions: ``truth`` of shape (n_documents,) are the true class indices, from 0. No method can learn a class without
labels, and draws without one would only add the same error to all methods: so each draw has at least one label of every
class that has documents.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from core.documents.drawn import Draw

Truth = NDArray[np.integer[Any]]

MORE = 15
"""labels of one class that the draws of more have beside the even ones"""
N_WORDS = 5
"""words of a class by which its documents are found"""
WRONG = 0.05
"""share of wrong labels"""
_UNSEEN = 1e-3
"""share of documents that stands for a word that a side does not have"""


class Labels(NamedTuple):
    """Documents with the labels that they were given."""

    positions: NDArray[np.int64]
    """shape (n_labels,): positions of the documents, in the order in which they were labeled"""
    told: NDArray[np.int32]
    """shape (n_labels,): class indices that were given, right or wrong"""
    drawn: NDArray[np.int8]
    """shape (n_labels,): what the service knows of how each was obtained, values of core.documents.drawn.Draw"""

    @classmethod
    def of(cls, positions: NDArray[np.integer[Any]], truth: Truth, draw: Draw = Draw.UNKNOWN) -> Self:
        """The true labels of documents."""
        return cls(
            np.asarray(positions, np.int64), truth[positions].astype(np.int32), np.full(len(positions), draw, np.int8)
        )

    def followed_by(self, other: "Labels") -> "Labels":
        """These labels, and others after them."""
        return Labels(
            np.concatenate([self.positions, other.positions]),
            np.concatenate([self.told, other.told]),
            np.concatenate([self.drawn, other.drawn]),
        )

    def taken(self, places: NDArray[np.integer[Any]]) -> "Labels":
        """The labels at some places, in their order."""
        return Labels(self.positions[places], self.told[places], self.drawn[places])

    def counts(self, n_classes: int) -> NDArray[np.int64]:
        """Labels of each class, as given, shape (n_classes,)."""
        return np.bincount(self.told, minlength=n_classes)


def even(truth: Truth, per_class: int, seed: int) -> Labels:
    """As many labels of every class."""
    return _counted(truth, [per_class] * _n_classes(truth), seed)


def random(truth: Truth, n_labels: int, seed: int) -> Labels:
    """Labels at random, but at least one of each class."""
    order = np.random.default_rng([seed, 1]).permutation(len(truth))
    firsts = np.array([order[np.argmax(truth[order] == each)] for each in range(_n_classes(truth))])
    return Labels.of(np.concatenate([firsts, order[~np.isin(order, firsts)][: n_labels - len(firsts)]]), truth)


def skewed(truth: Truth, per_class: int, favoured: int, ratio: float, seed: int) -> Labels:
    """As many labels in all as ``per_class`` of each, but of one class ``ratio`` times as many as of every other."""
    n_classes = _n_classes(truth)
    total = per_class * n_classes
    own = round(total * ratio / (n_classes - 1 + ratio))
    least, surplus = divmod(total - own, n_classes - 1)
    counts = [least + (place < surplus) for place in range(n_classes - 1)]
    return _counted(truth, [*counts[:favoured], own, *counts[favoured:]], seed)


def more(truth: Truth, per_class: int, favoured: int, seed: int) -> Labels:
    """Even labels and, after them, MORE of one class."""
    first = even(truth, per_class, seed)
    counts = [per_class] * _n_classes(truth)
    counts[favoured] += MORE
    larger = _counted(truth, counts, seed)
    return first.followed_by(larger.taken(np.flatnonzero(~np.isin(larger.positions, first.positions))))


def found(truth: Truth, X: sp.csr_matrix, per_class: int, seed: int) -> Labels:
    """As many labels of every class, but only of documents that hold one of the words by which somebody would search
    for it.
    """
    order, picked = _order(truth, seed), []
    for each in range(_n_classes(truth)):
        held = np.asarray((X[:, words_of(truth, X, each)] > 0).sum(axis=1)).ravel() > 0
        picked.append(order[(truth[order] == each) & held[order]][:per_class])
    return Labels.of(np.concatenate(picked), truth)


def words_of(truth: Truth, X: sp.csr_matrix, of_class: int) -> NDArray[np.int64]:
    """The columns of the words that mark a class, best first: by p log(p / q), p and q the shares of its and of the
    other documents that hold it.
    """
    held = (X > 0).astype(np.float64)
    own, others = (np.asarray(held[mask].mean(axis=0)).ravel() for mask in (truth == of_class, truth != of_class))
    score = own * np.log((own + _UNSEEN) / (others + _UNSEEN))
    return np.argsort(-score, kind="stable")[:N_WORDS]


def wrong(truth: Truth, per_class: int, seed: int) -> Labels:
    """Even labels, the share WRONG of them, at least one, with another class."""
    labels, rng, n_classes = even(truth, per_class, seed), np.random.default_rng([seed, 2]), _n_classes(truth)
    changed = rng.choice(len(labels.told), max(1, round(WRONG * len(labels.told))), replace=False)
    told = labels.told.copy()
    told[changed] = (told[changed] + rng.integers(1, n_classes, len(changed))) % n_classes
    return labels._replace(told=told)


def evened(labels: Labels, n_classes: int) -> Labels:
    """The labels made even: of every class the first ones, as many as the class with the fewest has."""
    least = int(labels.counts(n_classes).min())
    places = np.concatenate([np.flatnonzero(labels.told == each)[:least] for each in range(n_classes)])
    return labels.taken(np.sort(places))


def favoured_classes(truth: Truth) -> list[int]:
    """The classes that draws of more favour in turn, at most three: the largest, the smallest, and the one in the
    middle.
    """
    by_size = np.argsort(-np.bincount(truth), kind="stable").tolist()
    return list(dict.fromkeys([by_size[0], by_size[-1], by_size[len(by_size) // 2]]))


def _counted(truth: Truth, counts: Sequence[int], seed: int) -> Labels:
    """So many labels of each class, in random order."""
    order = _order(truth, seed)
    picked = np.concatenate([order[truth[order] == each][:count] for each, count in enumerate(counts)])
    return Labels.of(order[np.isin(order, picked)], truth)


def _order(truth: Truth, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, 0]).permutation(len(truth))


def _n_classes(truth: Truth) -> int:
    return int(truth.max()) + 1
