"""Known labels of documents that may have several."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

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

    def known(self, class_index: int) -> NDArray[np.int8]:
        """shape (n_rows,): 1 for documents to which a class applies, -1 for documents to which it does not, 0 where
        that is not known.
        """
        found = np.where(self.complete, EXCLUDED, 0).astype(np.int8)
        own = self.indices == class_index
        found[self.owners[own]] = self.values[own]
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
