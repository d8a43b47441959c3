"""Known labels of documents that may have several."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import taken_places

APPLIES, EXCLUDED = 1, -1
"""Values of a class for a document: it applies, or is known not to."""


@dataclass(frozen=True)
class LabelSets:
    """Labels that are known of each document, as compressed sparse rows over the classes.

    Row ``i`` owns the slice ``indptr[i]:indptr[i + 1]`` of ``indices`` and ``values``; indices ascend in a row.
    """

    classes: Sequence[str | int]
    """labels, sorted"""
    indptr: NDArray[np.int64]
    """shape (n_rows + 1,), ascending from 0"""
    indices: NDArray[np.int32]
    """shape (n_known,): positions in ``classes``"""
    values: NDArray[np.int8]
    """shape (n_known,): APPLIES or EXCLUDED"""
    complete: NDArray[np.bool_]
    """shape (n_rows,): whether all labels of the document are known, so that classes without a value do not apply"""

    @classmethod
    def of(
        cls,
        applied: Iterable[Sequence[int] | None],
        excluded: Iterable[Sequence[int] | None],
        classes: Sequence[str | int],
    ) -> Self:
        """The labels of documents by the positions of their classes, and those that are known not to apply; None of
        a document for which no labels were given, or none excluded.
        """
        indptr, indices, values, complete = [0], list[int](), list[int](), list[bool]()
        for applies, others in zip(applied, excluded, strict=True):
            known = sorted(
                [(index, APPLIES) for index in applies or ()] + [(index, EXCLUDED) for index in others or ()]
            )
            indices += [index for index, _ in known]
            values += [value for _, value in known]
            indptr.append(len(indices))
            complete.append(applies is not None)
        return cls(
            classes,
            np.array(indptr, np.int64),
            np.array(indices, np.int32),
            np.array(values, np.int8),
            np.array(complete, bool),
        )

    @classmethod
    def of_single(cls, class_indices: NDArray[np.integer[Any]], classes: Sequence[str | int]) -> Self:
        """The labels of documents that have one at most, by its position, -1 for an unlabeled document."""
        complete = class_indices >= 0
        indptr = np.concatenate([[0], np.cumsum(complete)]).astype(np.int64)
        indices = class_indices[complete].astype(np.int32)
        return cls(classes, indptr, indices, np.full(len(indices), APPLIES, np.int8), complete)

    def single(self) -> NDArray[np.int32]:
        """shape (n_rows,): the position of the label of each document, -1 where none or several apply."""
        applies = self.values == APPLIES
        owners = self.owners[applies]
        found = np.full(self.n_rows, -1, np.int32)
        found[owners] = self.indices[applies]
        return np.where(np.bincount(owners, minlength=self.n_rows) == 1, found, np.int32(-1))

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return len(self.complete)

    @property
    def owners(self) -> NDArray[np.int64]:
        """shape (n_known,): the document of each value."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    @property
    def counts(self) -> NDArray[np.int64]:
        """shape (n_classes,): number of documents to which each class applies."""
        return np.bincount(self.indices[self.values == APPLIES], minlength=len(self.classes))

    def matrix(self) -> NDArray[np.int8]:
        """shape (n_rows, n_classes): 1 where a class applies, -1 where it does not, 0 where that is not known."""
        found = np.where(self.complete[:, None], EXCLUDED, 0).astype(np.int8).repeat(len(self.classes), axis=1)
        own = self.indices >= 0
        found[self.owners[own], self.indices[own]] = self.values[own]
        return found

    def sets(self, value: int = APPLIES) -> Iterator[list[str | int]]:
        """The classes of each document that have this value, sorted."""
        bounds = self.indptr.tolist()
        for start, stop in itertools.pairwise(bounds):
            own = self.indices[start:stop][self.values[start:stop] == value]
            yield [self.classes[index] for index in own.tolist()]

    def taken(self, positions: NDArray[np.int64]) -> "LabelSets":
        """The labels of these documents, in that order."""
        indptr, where = taken_places(self.indptr, positions)
        return LabelSets(self.classes, indptr, self.indices[where], self.values[where], self.complete[positions])

    def among(self, classes: Sequence[str | int]) -> "LabelSets":
        """These labels with their places in other sorted classes; -1 for one that is not there."""
        return replace(self, classes=classes, indices=places_among(self.classes, classes)[self.indices])

    def replaced(self, positions: NDArray[np.int64], others: "LabelSets") -> "LabelSets":
        """These labels with others, of the same classes, for the documents at these positions."""
        order = np.arange(self.n_rows)
        order[positions] = self.n_rows + np.arange(len(positions))
        return LabelSets(
            self.classes,
            np.concatenate([self.indptr, self.indptr[-1] + others.indptr[1:]]),
            np.concatenate([self.indices, others.indices]),
            np.concatenate([self.values, others.values]),
            np.concatenate([self.complete, others.complete]),
        ).taken(order)


def label_order(label: str | int) -> tuple[bool, str | int]:
    """Sort key of labels: numbers before texts."""
    return isinstance(label, str), label


def places_among(classes: Sequence[str | int], others: Sequence[str | int]) -> NDArray[np.int32]:
    """shape (n_classes,): the place of each class in others, -1 for one that is not there."""
    places = {label: place for place, label in enumerate(others)}
    return np.array([places.get(label, -1) for label in classes], np.int32)
