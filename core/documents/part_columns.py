"""The columns of documents of several parts: blocks of columns side by side, a block a part, each row of a block scaled
to length 1.

So no part outweighs another by its units or by how many numbers it has. What a part is worth is left to those that
learn from the rows. Of a part that is one number, as a price beside a text, length 1 would leave nothing but the sign:
it is divided by its root mean square.

Vectors of an encoder lie close to each other and far from zero, which stands for a missing one. So their rows count
from their mean: a document without a vector lies in the midst of the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import DENSE, FIELDS, Rows, RowsOfKind, TextRows, field_of, in_words, is_dense, parts_of
from core.documents.rows import SparseRows, to_dense, to_float32, unit_rows
from core.documents.vocabulary import UNKNOWN, Read, Vocabulary, number_unknown
from core.errors import MAX_FAULTS, Fault, InvalidDocuments


class EncoderId(NamedTuple):
    """A pre-trained encoder."""

    name: str
    """its name among the operator's encoders"""
    digest: str
    """SHA-256 of its files: another one of the name makes other vectors"""

    @property
    def part(self) -> str:
        """Name of the part that its vectors are."""
        return f"{DENSE}.{self.name}"


_FULL = 0.9
"""share of numbers that are not zero from which on vectors count from their mean"""
_SLICE = 1 << 19
"""numbers that are scaled at once"""

Encode = Callable[[TextRows], SparseRows]
"""Makes the vectors of texts."""


class Block(NamedTuple):
    """The columns of one part."""

    name: str
    """name of the part"""
    vocabulary: Vocabulary
    """meaning of the columns"""
    n_columns: int
    centre: NDArray[np.float32] | None = None
    """shape (n_columns,): the mean of the rows of length 1, from which the rows count; None of a part with zeros"""
    unit: float | None = None
    """what the numbers of a part of one column are divided by; None: each row is scaled to length 1"""

    def scaled(self, rows: SparseRows) -> SparseRows:
        """The rows of numbers as the model learns from them."""
        if self.unit is None:
            return self.centred(unit_rows(rows))
        return rows.trimmed._replace(values=to_float32(rows.trimmed.values.astype(np.float64) / self.unit))

    def centred(self, rows: SparseRows) -> SparseRows:
        """Rows of length 1 less the centre; a row without values stays so."""
        if self.centre is None:
            return rows
        held = np.diff(rows.indptr) > 0
        matrix = to_dense(rows, rows.indices)[held] - self.centre
        indptr = self.n_columns * np.concatenate([[0], np.cumsum(held)]).astype(np.int64)
        columns = np.tile(np.arange(self.n_columns, dtype=np.uint32), len(matrix))
        return SparseRows(indptr, columns, matrix.ravel(), self.n_columns)


def unit_of(rows: SparseRows) -> float | None:
    """The root mean square of the values of rows of one column; None of more columns, and where there is no value."""
    values = rows.trimmed.values.astype(np.float64)
    if rows.n_features > 1 or not values.any():
        return None
    # summed in sequence, so that the processor has no say in it
    return float(np.sqrt(np.cumsum(np.square(values))[-1] / np.count_nonzero(values)))


def centre_of(vectors: SparseRows) -> NDArray[np.float32] | None:
    """shape (n_features,): the mean of the rows scaled to length 1, of those with values; None of one column, and where
    more than a few numbers are zero, since rows that count from a mean store every number.
    """
    n_held = int(np.count_nonzero(np.diff(vectors.indptr)))
    if vectors.n_features == 1 or not n_held or vectors.n_nonzeros < _FULL * n_held * vectors.n_features:
        return None
    total = np.zeros(vectors.n_features)
    for start, stop in vectors.slices(_SLICE):
        rows = unit_rows(vectors.between(start, stop))
        total += np.bincount(rows.indices, rows.values, vectors.n_features)
    return (total / n_held).astype(np.float32)


@dataclass(frozen=True)
class PartColumns(Vocabulary):
    """Columns in blocks."""

    kind = "parts"
    blocks: Sequence[Block]
    """in the order of the columns"""
    encoder: EncoderId | None = None
    """encoder that makes a part of the text, if there is one"""
    encode: Encode | None = field(default=None, compare=False)
    """what makes it, where the encoder is at hand"""

    @property
    def nbytes(self) -> int:
        """See Vocabulary."""
        return sum(block.vocabulary.nbytes for block in self.blocks)

    @property
    def names(self) -> list[str]:
        """The names of the parts, in the order of their blocks."""
        return [block.name for block in self.blocks]

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """shape (n_blocks + 1,): the first column of each block, and the number of all columns."""
        return np.concatenate([[0], np.cumsum([block.n_columns for block in self.blocks])]).astype(np.int64)

    @property
    def ranges(self) -> dict[str, slice]:
        """The columns of each part, by name."""
        return {
            name: slice(start, stop)
            for name, (start, stop) in zip(self.names, pairwise(self.edges.tolist()), strict=True)
        }

    def read(self, rows: Rows) -> Read:
        """See Vocabulary. A document may lack parts.

        Raises InvalidDocuments for parts that the model does not know, and for dense vectors of another length.
        """
        given = self._with_vectors(parts_of(rows))
        unknown = [name for name in given if name not in self.names]
        if unknown:
            detail = f"the model was trained on {in_words(self.names)} and knows no {unknown[0]}"
            raise InvalidDocuments(detail, [Fault(0, field_of(unknown[0]), detail)])
        found = [_read(block, given.get(block.name), rows.n_rows) for block in self.blocks]
        made = self.encoder and self.encoder.part
        absent = SparseRows.empty(rows.n_rows, 0)
        missing = {
            block.name: int(np.count_nonzero(np.diff(given.get(block.name, absent).indptr) == 0))
            for block in self.blocks
            if block.name != made
        }
        return Read(
            side_by_side([each.rows for each in found]),
            sum(each.unknown for each in found),
            sum(each.n_values for block, each in zip(self.blocks, found, strict=True) if block.name != made),
            {name: count for name, count in missing.items() if count},
        )

    @property
    def encodes(self) -> bool:
        """See Vocabulary."""
        return self.encoder is not None

    def _with_vectors(self, given: Mapping[str, RowsOfKind]) -> Mapping[str, RowsOfKind]:
        """The parts of documents, with vectors made by the encoder for texts that have none."""
        texts = given.get(FIELDS["text"])
        if self.encoder is None or self.encode is None or not isinstance(texts, TextRows):
            return given
        own = given.get(self.encoder.part)
        if not isinstance(own, SparseRows):
            return {**given, self.encoder.part: self.encode(texts)}
        lacking = np.flatnonzero((np.diff(own.indptr) == 0) & (np.diff(texts.indptr) > 0))
        return (
            {**given, self.encoder.part: _with_rows(own, lacking, self.encode(texts.taken(lacking)))}
            if len(lacking)
            else given
        )

    def rows_beside(self, rows: Rows, known: Mapping[str, SparseRows]) -> SparseRows:
        """The rows of documents, given the rows of ``known`` parts in the columns of their block."""
        given = parts_of(rows)
        return side_by_side(
            [known.get(block.name) or _read(block, given.get(block.name), rows.n_rows).rows for block in self.blocks]
        )

    def of_part(self, name: str) -> Vocabulary | None:
        """The columns of a part, None if there is none of this name."""
        return next((block.vocabulary for block in self.blocks if block.name == name), None)

    def columns_of(self, other: Vocabulary) -> NDArray[np.int64]:
        """See Vocabulary."""
        assert isinstance(other, PartColumns)
        own = {block.name: (block, int(start)) for block, start in zip(self.blocks, self.edges, strict=False)}
        columns = [_columns_in(own.get(block.name), block) for block in other.blocks]
        return number_unknown(np.concatenate([np.zeros(0, np.int64), *columns]), int(self.edges[-1]))

    def named(self, columns: NDArray[np.integer[Any]]) -> list[str]:
        """See Vocabulary. A column that has but a number is named by its part, too."""
        places, names = self.places_of(columns), [""] * len(columns)
        for place, block in enumerate(self.blocks):
            chosen = np.flatnonzero(places == place)
            own = columns[chosen].astype(np.int64) - self.edges[place]
            named = block.vocabulary.named(own)
            for index, name in zip(
                chosen.tolist(), named or [f"{block.name}[{column}]" for column in own.tolist()], strict=True
            ):
                names[index] = name
        return names

    def places_of(self, columns: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """shape (n,): the block of each column."""
        return np.searchsorted(self.edges[1:], columns, side="right")

    @property
    def strings(self) -> Sequence[str]:
        """The strings of all blocks."""
        return [string for block in self.blocks for string in block.vocabulary.strings]

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """See Vocabulary. Arrays of a block begin with its position."""
        arrays: dict[str, NDArray[Any]] = {}
        blocks = []
        for place, block in enumerate(self.blocks):
            own, meta = block.vocabulary.to_arrays()
            own |= {} if block.centre is None else {"centre": block.centre}
            arrays |= {f"part{place}_{name}": array for name, array in own.items()}
            unit = {} if block.unit is None else {"unit": block.unit}
            blocks.append({"name": block.name, "n_columns": block.n_columns, "vocabulary": meta, **unit})
        return arrays, {
            "kind": self.kind,
            "blocks": blocks,
            **({} if self.encoder is None else {"encoder": self.encoder._asdict()}),
        }

    def facts(self) -> dict[str, str | int]:
        """The names of the parts, and the facts of each."""
        facts: dict[str, str | int] = {"parts": ", ".join(self.names)}
        facts |= {} if self.encoder is None else {"encoder": self.encoder.name, "encoder_digest": self.encoder.digest}
        for block in self.blocks:
            facts |= block.vocabulary.facts()
        return facts


def side_by_side(blocks: Sequence[SparseRows]) -> SparseRows:
    """The rows of all blocks joined, the columns of each after the columns of the blocks before."""
    own = [rows.trimmed for rows in blocks]
    indptr = np.asarray(sum(rows.indptr for rows in own), np.int64)
    indices, values = np.empty(int(indptr[-1]), np.uint32), np.empty(int(indptr[-1]), np.float32)
    starts, n_columns = indptr[:-1].copy(), 0
    for rows in own:
        lengths = np.diff(rows.indptr)
        where = np.repeat(starts - rows.indptr[:-1], lengths) + np.arange(rows.n_nonzeros)
        indices[where] = rows.indices + np.uint32(n_columns)
        values[where] = rows.values
        starts += lengths
        n_columns += rows.n_features
    return SparseRows(indptr, indices, values, n_columns)


def _with_rows(rows: SparseRows, places: NDArray[np.int64], others: SparseRows) -> SparseRows:
    """The rows, with others at these places."""
    order = np.arange(rows.n_rows)
    order[places] = rows.n_rows + np.arange(len(places))
    return rows.followed_by(others).taken(order)


def _read(block: Block, part: RowsOfKind | None, n_rows: int) -> Read:
    """One part in the columns of its block, numbered from 0."""
    if part is None:
        return Read(SparseRows.empty(n_rows, block.n_columns), 0, 0)
    if is_dense(block.name) and isinstance(part, SparseRows) and part.n_features != block.n_columns:
        raise _wrong_length(block, part)
    read = block.vocabulary.read(part)
    rows, unknown = _within(read.rows, block.n_columns)
    return Read(
        rows if isinstance(part, TextRows) else block.scaled(rows),
        read.unknown + unknown,
        read.n_values,
    )


def _wrong_length(block: Block, part: SparseRows) -> InvalidDocuments:
    detail = (
        f"has {part.n_features} numbers, where the model takes {block.n_columns}; it must come from the same encoder"
    )
    held = np.flatnonzero(np.diff(part.indptr))[:MAX_FAULTS].tolist() or [0]
    return InvalidDocuments(f"{block.name} {detail}", [Fault(row, field_of(block.name), detail) for row in held])


def _within(rows: SparseRows, n_columns: int) -> tuple[SparseRows, int]:
    """The rows without columns beyond so many, and how many values that leaves out."""
    kept = rows.trimmed.indices < n_columns
    if kept.all():
        return rows._replace(n_features=n_columns), 0
    return rows.keeping(kept)._replace(n_features=n_columns), int(np.count_nonzero(~kept))


def _columns_in(own: tuple[Block, int] | None, other: Block) -> NDArray[np.int64]:
    """The columns here of the columns of a block of another vocabulary, UNKNOWN for columns that this one lacks."""
    if own is None or own[0].vocabulary.kind != other.vocabulary.kind:
        return np.full(other.n_columns, UNKNOWN)
    block, start = own
    if is_dense(block.name) and block.n_columns != other.n_columns:  # another encoder made it
        return np.full(other.n_columns, UNKNOWN)
    columns = (
        np.arange(other.n_columns)
        if block.vocabulary.kind == "vectors"
        else block.vocabulary.columns_of(other.vocabulary)
    )
    return np.where(columns < block.n_columns, columns + start, UNKNOWN)
