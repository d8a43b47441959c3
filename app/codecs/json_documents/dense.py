"""Dense vectors of JSON documents as rows. All vectors of a part have the same number of numbers."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Protocol

import numpy as np

from app.codecs.numbers import rows_of
from core.documents.kinds import DENSE, field_of
from core.documents.rows import SparseRows, without_zeros

Vectors = Sequence[Sequence[float] | None]


class HasVectors(Protocol):
    """A document that may have vectors."""

    vector: list[float] | None
    vectors: dict[str, list[float] | None] | None


def vectors_in(documents: Sequence[HasVectors], part: str) -> Vectors:
    """The vector of each document in a dense part, None where it has none."""
    if part == DENSE:
        return [document.vector for document in documents]
    name = part.removeprefix(f"{DENSE}.")
    return [None if document.vectors is None else document.vectors.get(name) for document in documents]


class DenseParts:
    """The lengths of the vectors of each part, by the first vector of a body."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}

    def faults(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, str] | None]:
        """Of each document the field and detail of a vector of another length, or None."""
        for vectors in zip_longest(*parts.values()):
            given = zip(parts, vectors, strict=True)
            yield next(
                (fault for part, vector in given if vector is not None and (fault := self._fault(part, len(vector)))),
                None,
            )

    def rows(self, part: str, vectors: Vectors) -> SparseRows:
        """Rows of vectors without faults.

        Zeros are dropped, as of dense matrices in every format; a document without a vector has an empty row.
        """
        n_features = self._lengths[part]
        held = np.fromiter((vector is not None for vector in vectors), bool, len(vectors))
        indptr = np.concatenate([[0], np.cumsum(held * n_features)]).astype(np.int64)
        values = np.fromiter(
            chain.from_iterable(vector for vector in vectors if vector is not None), np.float64, int(indptr[-1])
        )
        indices = np.tile(np.arange(n_features, dtype=np.uint32), int(held.sum()))
        return without_zeros(rows_of(indptr, indices, values, n_features))

    def _fault(self, part: str, length: int) -> tuple[str, str] | None:
        name = part.removeprefix(DENSE).removeprefix(".")
        where = f"{name!r} " if name else ""
        if not length:
            return field_of(part), f"{where}has no number; a document without a vector leaves it out"
        known = self._lengths.setdefault(part, length)
        return (
            None if known == length else (field_of(part), f"{where}has {length} numbers, but earlier ones have {known}")
        )
