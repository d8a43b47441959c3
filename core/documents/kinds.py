"""The kinds of documents as their owners have them, one a row: vectors (``SparseRows``), named features, text, and
several of these as parts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows, find_faults, is_faultless, layout_fault, sorted_rows
from core.errors import MAX_FAULTS, Fault

PartKind = Literal["vectors", "features", "text"]
Kind = Literal[PartKind, "parts"]

FIELDS: dict[Kind, str] = {"vectors": "indices", "features": "features", "text": "text"}
"""field of a document that holds it, by kind; dense vectors have one of their own"""

KINDS: dict[Kind, str] = {"vectors": "vectors", "features": "named features", "text": "text", "parts": "several parts"}
"""names of the kinds for people"""

DENSE = "vector"
"""part of a document that is a dense vector; where there are several, each is this, a dot, and its name"""


class NamedRows(NamedTuple):
    """Rows of named features."""

    rows: SparseRows
    names: Sequence[str]
    """shape (n_features,): name of each column, all different"""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.n_rows

    @property
    def indptr(self) -> NDArray[np.int64]:
        """shape (n_rows + 1,): where each row begins and ends."""
        return self.rows.indptr

    def between(self, start: int, stop: int) -> "NamedRows":
        """See SparseRows."""
        return self._replace(rows=self.rows.between(start, stop))

    def taken(self, positions: NDArray[np.int64]) -> "NamedRows":
        """See SparseRows."""
        return self._replace(rows=self.rows.taken(positions))


@dataclass(frozen=True)
class TextRows:
    """Texts: row ``i`` is the UTF-8 of the bytes ``indptr[i]:indptr[i + 1]`` of ``data``."""

    indptr: NDArray[np.int64]
    """shape (n_rows + 1,), ascending"""
    data: NDArray[np.uint8]
    """shape (n_bytes,)"""

    @classmethod
    def of(cls, texts: Sequence[str]) -> "TextRows":
        """These texts; raises UnicodeEncodeError for texts that are not Unicode."""
        data = "".join(texts).encode()
        indptr = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=indptr[1:])
        # as many bytes as characters: each is one
        if len(data) != indptr[-1]:
            np.cumsum(np.fromiter((len(text.encode()) for text in texts), np.int64, len(texts)), out=indptr[1:])
        return cls(indptr, np.frombuffer(data, np.uint8))

    @classmethod
    def joined(cls, parts: "Sequence[TextRows]") -> "TextRows":
        """The rows of all parts, at least one; each part begins with its data."""
        lengths = np.concatenate([np.diff(part.indptr) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), np.concatenate([part.data for part in parts])
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    def __iter__(self) -> Iterator[str]:
        """The texts in order, each decoded as it is reached."""
        return (self.data[start:stop].tobytes().decode() for start, stop in pairwise(self.indptr.tolist()))

    def between(self, start: int, stop: int) -> "TextRows":
        """See SparseRows."""
        return TextRows(self.indptr[start : stop + 1], self.data)

    def taken(self, positions: NDArray[np.int64]) -> "TextRows":
        """See SparseRows."""
        starts, stops = self.indptr[positions], self.indptr[positions + 1]
        indptr = np.concatenate([[0], np.cumsum(stops - starts)]).astype(np.int64)
        parts = [self.data[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        return TextRows(indptr, np.concatenate([np.zeros(0, np.uint8), *parts]))


RowsOfKind = SparseRows | NamedRows | TextRows


@dataclass(frozen=True)
class PartRows:
    """Documents of several parts: row ``i`` of each part is of document ``i``, and empty where the document does not
    have the part.
    """

    parts: Mapping[str, RowsOfKind]
    """at least one, by name: the field of the document that holds it, of dense vectors as DENSE says; all have the same
    number of rows"""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return next(iter(self.parts.values())).n_rows

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """shape (n_rows + 1,): how much all rows before each hold, nonzeros and bytes of text alike."""
        return np.asarray(sum(part.indptr - part.indptr[0] for part in self.parts.values()), np.int64)

    def between(self, start: int, stop: int) -> "PartRows":
        """See SparseRows."""
        return PartRows({name: part.between(start, stop) for name, part in self.parts.items()})

    def taken(self, positions: NDArray[np.int64]) -> "PartRows":
        """See SparseRows."""
        return PartRows({name: part.taken(positions) for name, part in self.parts.items()})


Rows = RowsOfKind | PartRows


def kind_of(rows: Rows) -> Kind:
    """The kind of these documents; of a single part its own."""
    match rows:
        case SparseRows():
            return "vectors"
        case NamedRows():
            return "features"
        case TextRows():
            return "text"
        case PartRows():
            return kind_of(next(iter(rows.parts.values()))) if len(rows.parts) == 1 else "parts"


def parts_of(rows: Rows) -> Mapping[str, RowsOfKind]:
    """The parts of these documents by name; documents of one kind have one part."""
    return rows.parts if isinstance(rows, PartRows) else {FIELDS[kind_of(rows)]: rows}


def without_parts(rows: Rows) -> Rows:
    """The documents by their only part, or as they are if they have several."""
    return next(iter(rows.parts.values())) if isinstance(rows, PartRows) and len(rows.parts) == 1 else rows


def is_dense(part: str) -> bool:
    """Whether a part of this name is a dense vector."""
    return part == DENSE or part.startswith(f"{DENSE}.")


def field_of(part: str) -> str:
    """The field of a document that holds a part: of one of several dense vectors ``vectors``."""
    return "vectors" if is_dense(part) and part != DENSE else part


def in_words(parts: Iterable[str]) -> str:
    """Names of parts as a list in a sentence."""
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last


def shape_fault(rows: Rows) -> Fault | None:
    """The fault that keeps arrays from being rows, if there is one; the other functions take rows without it."""
    match rows:
        case SparseRows():
            return layout_fault(rows)
        case NamedRows():
            return layout_fault(rows.rows)
        case TextRows():
            return None
        case PartRows():
            lengths = {part.n_rows for part in rows.parts.values()}
            if len(lengths) > 1:
                return Fault(
                    "",
                    in_words(rows.parts),
                    f"have different numbers of documents: {in_words(map(str, sorted(lengths)))}",
                )
            return next((wrong for part in rows.parts.values() if (wrong := shape_fault(part)) is not None), None)


def checked(rows: Rows, limit: int = MAX_FAULTS) -> tuple[Rows, list[Fault]]:
    """Rows in the order in which they are stored, and at most ``limit`` of their faults.

    ``Fault.document`` is the row.
    """
    match rows:
        case PartRows():
            return _checked_parts(rows, limit)
        case SparseRows():
            if is_faultless(rows):
                return rows, []
            ordered = sorted_rows(rows)
            return ordered, find_faults(ordered, limit)
        case NamedRows():
            return rows, _odd_values(rows, limit)
        case TextRows():
            return rows, []


def _checked_parts(rows: PartRows, limit: int) -> tuple[PartRows, list[Fault]]:
    found: list[Fault] = []
    ordered: dict[str, RowsOfKind] = {}
    for name, part in rows.parts.items():
        each, faults = checked(part, limit)
        assert not isinstance(each, PartRows)
        ordered[name] = each
        found += [
            fault._replace(field=field_of(name)) if is_dense(name) and len(rows.parts) > 1 else fault
            for fault in faults
        ]
    return PartRows(ordered), sorted(found, key=lambda fault: int(fault.document or 0))[:limit]


def _odd_values(named: NamedRows, limit: int) -> list[Fault]:
    first, last = int(named.indptr[0]), int(named.indptr[-1])
    odd = np.flatnonzero(~np.isfinite(named.rows.values[first:last]))[:limit] + first
    owners = np.searchsorted(named.indptr, odd, side="right") - 1
    names = [named.names[column] for column in named.rows.indices[odd].tolist()]
    return [
        Fault(
            row,
            "features",
            f"the value of {name!r} is not a finite number, or beyond 3.4e38, the largest of float32",
        )
        for row, name in zip(owners.tolist(), names, strict=True)
    ]


def spans(indptr: NDArray[np.int64], most_rows: int, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of rows, of at most ``most_rows`` rows and ``most`` entries each; a single row may have
    more."""
    start, n_rows = 0, len(indptr) - 1
    while start < n_rows:
        stop = int(np.searchsorted(indptr[start : start + most_rows + 1], indptr[start] + most, "right")) - 1 + start
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


_DIGEST_BYTES = 16


def row_digests(rows: Rows, positions: NDArray[np.int64]) -> Iterator[bytes]:
    """A digest of each document at these positions: equal documents have equal digests, in whatever dataset they are.

    Vectors have no explicit zeros, and their indices ascend.
    """
    rows = without_parts(rows)
    for position in positions.tolist():
        yield _digest(_content(rows, position))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _content(rows: Rows, position: int) -> bytes:
    start, stop = int(rows.indptr[position]), int(rows.indptr[position + 1])
    match rows:
        case PartRows():
            # a part that the document lacks says no more than one that no document has
            held = [
                (name, part)
                for name, part in sorted(rows.parts.items())
                if part.indptr[position + 1] > part.indptr[position]
            ]
            return b"".join(name.encode() + b"\0" + _digest(_content(part, position)) for name, part in held)
        case TextRows():
            return rows.data[start:stop].tobytes()
        case SparseRows():
            return rows.indices[start:stop].tobytes() + rows.values[start:stop].tobytes()
        case NamedRows():
            # columns are numbered by each dataset in its own order
            names = [rows.names[column] for column in rows.rows.indices[start:stop].tolist()]
            return repr(sorted(zip(names, rows.rows.values[start:stop].tolist(), strict=True))).encode()
