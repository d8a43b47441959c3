"""The labels of a job as rows of a table, also with the extra fields of their documents: the stored lines of JSON, a
block at a time.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from app.http.answers import Column, Row, columns_beside
from storage.errors import StoreUnavailable
from storage.records import Label
from storage.repositories.datasets import StoredFields
from storage.repositories.datasets.files.ids import Ids

NDJSON = "application/x-ndjson"
_BLOCK_LINES = 2000


class _Line(msgspec.Struct):
    """A stored line: see LabeledDocument."""

    id: str
    label: Label
    score: float
    probability: float | None
    path: dict[str, float] | msgspec.UnsetType = msgspec.UNSET


class _LineOfSeveral(msgspec.Struct):
    """A stored line of several labels: see DocumentLabels."""

    id: str
    labels: list[Label]
    probabilities: dict[str, float]


SEPARATOR = ";"
"""stands between the labels of a document in a table"""
AnyLine = _Line | _LineOfSeveral


class Beside(NamedTuple):
    """Sources of the extra fields of labeled documents."""

    ids: Ids
    fields: StoredFields


_decoder, _several_decoder = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_LineOfSeveral)
_encode_lines = msgspec.json.Encoder().encode_lines


def label_columns(path: Path, beside: Beside | None) -> list[Column]:
    """The columns of the table. An extra field that is called as one of the others has "fields." before its name."""
    with path.open("rb") as lines:
        first = lines.readline()
    if _of_several(first):
        own = [Column("id", "text"), Column("labels", "text")]
    else:
        label = Column("label", "integer" if first and isinstance(_decoder.decode(first).label, int) else "text")
        own = [Column("id", "text"), label, Column("score", "number"), Column("probability", "number")]
    return columns_beside(own, [] if beside is None else beside.fields.names, "fields.")


def label_rows(path: Path, beside: Beside | None) -> Iterator[Row]:
    """The rows of the table."""
    for block, fields in _blocks(path, beside):
        for line, found in zip(block, fields, strict=True):
            own = (
                (line.id, SEPARATOR.join(map(str, line.labels)))
                if isinstance(line, _LineOfSeveral)
                else (line.id, line.label, line.score, line.probability)
            )
            yield (
                *own,
                *((found.get(name) for name in beside.fields.names) if beside else ()),
            )


def label_lines(path: Path, beside: Beside) -> Iterator[bytes]:
    """The lines with the extra fields, in blocks."""
    for block, fields in _blocks(path, beside):
        yield _encode_lines(
            [
                {name: value for name, value in msgspec.structs.asdict(line).items() if value is not msgspec.UNSET}
                | {"fields": found}
                for line, found in zip(block, fields, strict=True)
            ]
        )


def _of_several(line: bytes) -> bool:
    """Whether a stored line has several labels."""
    return b'"labels":' in line and b'"label":' not in line


def _blocks(path: Path, beside: Beside | None) -> Iterator[tuple[Sequence[AnyLine], list[dict[str, Any]]]]:
    """Lines and the extra fields of their documents.

    Both are in the order of the dataset, so that its ids are read once.
    """
    left = enumerate(beside.ids) if beside else iter(())
    with path.open("rb") as lines:
        while block := list(islice(lines, _BLOCK_LINES)):
            decoder = _several_decoder if _of_several(block[0]) else _decoder
            found: Sequence[AnyLine] = decoder.decode_lines(b"".join(block))
            if beside is None:
                yield found, [{}] * len(found)
                continue
            positions = [_position(line.id, left) for line in found]
            yield found, list(beside.fields.taken(np.array(positions, np.int64)))


def _position(wanted: str, left: Iterator[tuple[int, str]]) -> int:
    for position, id in left:
        if id == wanted:
            return position
    raise StoreUnavailable(f"the labels name the document {wanted!r}, which the dataset of the job does not have")
