"""Vocabularies: the meaning of a model's columns (numbers, names, terms of text), which turns documents into rows."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import (
    FIELDS,
    KINDS,
    Kind,
    NamedRows,
    PartKind,
    Rows,
    field_of,
    in_words,
    parts_of,
    without_parts,
)
from core.documents.rows import SparseRows, sorted_rows
from core.errors import Fault, InvalidDocuments

UNKNOWN = -1
_STEP = 10_000
"""strings that are numbered at once"""
_PLACE_BYTES = 104
"""bytes of the places of a string in a list and in a dictionary"""


class Read(NamedTuple):
    """Documents as rows of a model."""

    rows: SparseRows
    """rows without what is unknown"""
    unknown: int
    """number of values (of text: words) without a column"""
    n_values: int
    """number of all values"""
    missing: Mapping[str, int] = MappingProxyType({})
    """of documents of several parts, the number of those that lack each part, where any does"""


class Vocabulary(ABC):
    """The columns of a model."""

    kind: ClassVar[Kind]
    """kind of the documents that it reads"""

    @property
    def encodes(self) -> bool:
        """Whether reading documents runs a pre-trained encoder, which takes its time."""
        return False

    @property
    def nbytes(self) -> int:
        """Memory that it takes, look-up tables included.

        The first call builds them, so that loading a model pays for them, not the first reader.
        """
        return 0

    @abstractmethod
    def read(self, rows: Rows) -> Read:
        """Documents as rows; raises InvalidDocuments for documents of another kind."""

    @abstractmethod
    def columns_of(self, other: "Vocabulary") -> NDArray[np.int64]:
        """The column here of each column of another vocabulary of this kind, all different.

        Columns unknown here get numbers beyond all others.
        """

    def named(self, columns: NDArray[np.integer[Any]]) -> list[str] | None:
        """The names of these columns; None where they have numbers alone."""
        return None

    @property
    def strings(self) -> Sequence[str]:
        """The strings of the columns' names, all different; empty where columns have numbers alone."""
        return ()

    @abstractmethod
    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays to store as tensors, and all else to store as JSON."""

    def facts(self) -> dict[str, str | int]:
        """Facts for the owner of a model."""
        return {}


@dataclass(frozen=True)
class Numbers(Vocabulary):
    """Columns with numbers alone: vectors are rows as they are."""

    kind = "vectors"

    def read(self, rows: Rows) -> Read:
        """See Vocabulary."""
        rows = without_parts(rows)
        if not isinstance(rows, SparseRows):
            raise wrong_kind(self.kind, rows)
        return Read(rows, 0, rows.n_nonzeros)

    def columns_of(self, other: Vocabulary) -> NDArray[np.int64]:
        """See Vocabulary; never called, as numbers are the same everywhere."""
        raise NotImplementedError

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """See Vocabulary."""
        return {}, {"kind": self.kind}


NUMBERS = Numbers()


@dataclass(frozen=True)
class Names(Vocabulary):
    """Columns with a name each."""

    kind = "features"
    names: Sequence[str]
    """names by column, all different"""

    @property
    def nbytes(self) -> int:
        """See Vocabulary."""
        return self._places.nbytes

    def read(self, rows: Rows) -> Read:
        """See Vocabulary."""
        rows = without_parts(rows)
        if not isinstance(rows, NamedRows):
            raise wrong_kind(self.kind, rows)
        own = rows.rows.trimmed
        given, where = np.unique(own.indices, return_inverse=True)
        columns = self._columns(rows.names[name] for name in given.tolist())[where]
        known = columns != UNKNOWN
        found = own._replace(indices=columns.astype(np.uint32), n_features=len(self.names)).keeping(known)
        return Read(sorted_rows(found), int(np.count_nonzero(~known)), own.n_nonzeros)

    def columns_of(self, other: Vocabulary) -> NDArray[np.int64]:
        """See Vocabulary."""
        assert isinstance(other, Names)
        return number_unknown(self._columns(other.names), len(self.names))

    def named(self, columns: NDArray[np.integer[Any]]) -> list[str]:
        """See Vocabulary."""
        return [self.names[column] for column in columns.tolist()]

    @property
    def strings(self) -> Sequence[str]:
        """The names."""
        return self.names

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """See Vocabulary."""
        return {}, {"kind": self.kind, "names": list(self.names)}

    def facts(self) -> dict[str, str | int]:
        """The number of names."""
        return {"n_names": len(self.names)}

    def _columns(self, names: Iterable[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self._places.__getitem__, names), np.int64)

    @cached_property
    def _places(self) -> "Places":
        return Places.of(self.names)


class Places(dict[str, int]):
    """Positions of strings in a list; UNKNOWN for all others."""

    nbytes = 0
    """Memory that they take, list and strings included."""

    @classmethod
    def of(cls, strings: Sequence[str]) -> "Places":
        """The places of distinct strings, built in steps, so that no thread waits long for the interpreter."""
        places, numbered = cls(), enumerate(strings)
        while step := [(string, place) for place, string in islice(numbered, _STEP)]:
            places.update(step)
            places.nbytes += sum(string_bytes(string) for string, _ in step)
        return places

    def __missing__(self, string: str) -> int:
        return UNKNOWN


def string_bytes(string: str) -> int:
    """Memory that a string takes in a list and a dictionary. Text without spaces may be a word of megabytes."""
    return _PLACE_BYTES + sys.getsizeof(string)


def number_unknown(columns: NDArray[np.int64], n_columns: int) -> NDArray[np.int64]:
    """The columns, with a distinct number beyond all others in place of each UNKNOWN."""
    return np.where(columns == UNKNOWN, n_columns + np.arange(len(columns)), columns)


def wrong_kind(taken: PartKind, rows: Rows) -> InvalidDocuments:
    """The error of documents of another kind than the one ``taken``; it names the first."""
    given = list(parts_of(rows))
    odd = next(name for name in given if name != FIELDS[taken] or len(given) == 1)
    return InvalidDocuments(kind_detail(taken, given), [Fault(0, field_of(odd), kind_detail(taken, given))])


def kind_detail(taken: PartKind, given: Iterable[str]) -> str:
    """The message about documents with other parts than the kind has."""
    return f"the model was trained on {KINDS[taken]} and takes {FIELDS[taken]}, not {in_words(given)}"
