"""Votes of rules, models and people for the classes of documents."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.label_sets import label_order, places_among
from core.documents.rows import taken_places
from core.errors import Fault, refuse, refused

Vote = str | int | Mapping[Any, float]
"""A vote of one voter: a class, or the probability of some classes."""


@dataclass(frozen=True)
class Votes:
    """Votes for classes, as compressed sparse rows: who is absent from a document abstained.

    Row ``i`` owns the slice ``indptr[i]:indptr[i + 1]`` of the other arrays, which ascend by voter and class in it.
    """

    voters: Sequence[str]
    """names of the voters, sorted"""
    classes: Sequence[str | int]
    """classes that were voted for or that documents are labeled with, sorted"""
    indptr: NDArray[np.int64]
    """shape (n_rows + 1,), ascending from 0"""
    voter: NDArray[np.int32]
    """shape (n_votes,): positions in ``voters``"""
    class_index: NDArray[np.int32]
    """shape (n_votes,): positions in ``classes``"""
    probability: NDArray[np.float64]
    """shape (n_votes,): probability of the class by this voter, 0 to 1; 1 where it named the class alone"""

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @property
    def owners(self) -> NDArray[np.int64]:
        """shape (n_votes,): the document of each vote."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    @property
    def differ(self) -> NDArray[np.bool_]:
        """shape (n_rows,): whether votes about a document are for several classes."""
        least, most = np.full(self.n_rows, len(self.classes)), np.full(self.n_rows, -1)
        np.minimum.at(least, self.owners, self.class_index)
        np.maximum.at(most, self.owners, self.class_index)
        return most > least

    def taken(self, positions: NDArray[np.int64]) -> "Votes":
        """The votes about these documents, in that order."""
        indptr, where = taken_places(self.indptr, positions)
        return Votes(
            self.voters,
            self.classes,
            indptr,
            self.voter[where],
            self.class_index[where],
            self.probability[where],
        )

    def joined(self, answers: Mapping[int, Mapping[str, str | int]]) -> "Votes":
        """These votes with the answers of people about some documents, by position and person; none is a voter yet."""
        voters = sorted({*self.voters, *(person for each in answers.values() for person in each)})
        classes = sorted(
            {*self.classes, *(label for each in answers.values() for label in each.values())}, key=label_order
        )
        number, place = ({name: at for at, name in enumerate(names)} for names in (voters, classes))
        given = [(row, number[who], place[label]) for row, each in answers.items() for who, label in each.items()]
        own = self.among(classes)
        known = np.array([number[voter] for voter in self.voters], np.int64)[self.voter]
        before = np.column_stack([self.owners, known, own.class_index])
        every = np.concatenate([before, np.array(given, np.int64).reshape(-1, 3)])
        order = np.lexsort(every.T[::-1])
        rows, voter, class_index = every[order].T
        probability = np.concatenate([self.probability, np.ones(len(given))])[order]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.n_rows))]).astype(np.int64)
        return Votes(voters, classes, indptr, voter.astype(np.int32), class_index.astype(np.int32), probability)

    @classmethod
    def none(cls, n_rows: int) -> "Votes":
        """No votes about so many documents."""
        nothing = np.zeros(0, np.int32)
        return cls([], [], np.zeros(n_rows + 1, np.int64), nothing, nothing, np.zeros(0))

    def among(self, classes: Sequence[str | int]) -> "Votes":
        """These votes with the places of their classes in other sorted classes, which have all of them."""
        return replace(self, classes=classes, class_index=places_among(self.classes, classes)[self.class_index])

    def by_document(self) -> Iterator[dict[str, Vote]]:
        """The votes about each document by voter."""
        bounds = self.indptr.tolist()
        for start, stop in itertools.pairwise(bounds):
            given: dict[str, dict[str | int, float]] = {}
            of_row = (array[start:stop].tolist() for array in (self.voter, self.class_index, self.probability))
            for voter, class_index, probability in zip(*of_row, strict=True):
                given.setdefault(self.voters[voter], {})[self.classes[class_index]] = probability
            # the class alone, where a vote is for it without a doubt
            yield {voter: next(iter(vote)) if list(vote.values()) == [1.0] else vote for voter, vote in given.items()}


def checked_weights(weights: NDArray[np.float64] | None, n_rows: int) -> NDArray[np.float64]:
    """The weights of the labels of ``n_rows`` documents, shape (n_rows,), 1 if none are given; raises InvalidDocuments
    for another shape, for weights that are negative or no finite numbers, and for those whose share of all is beyond
    the range of numbers.
    """
    if weights is None:
        return np.ones(n_rows)
    if weights.shape != (n_rows,):
        raise refused(f"{weights.size} given for {n_rows} documents", "weight")
    with np.errstate(all="ignore"):
        total = weights.sum()
        lost = (weights > 0) & (weights / total == 0)
    for wrong, why in (
        (~(np.isfinite(weights) & (weights >= 0)), "is no weight; a weight is a finite number of at least 0"),
        (lost, f"is 0 as a part of all weights, {total:g}; divide them by the largest, and leave out what is then 0"),
    ):
        if wrong.any():
            place = int(wrong.argmax())
            refuse([Fault(place, "weight", f"{weights[place]:g} {why}")])
    return weights
