"""The labels of a job as rows of a table, also with the extra fields of their documents: the stored lines of JSON, a
block at a time.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from app.codecs.tables.cells import check_separator, joined
from app.http.answers import Column, Row, columns_beside
from storage.errors import StoreUnavailable
from storage.repositories.datasets import StoredFields
from storage.repositories.datasets.files.ids import Ids

_BLOCK_LINES = 2000
Line = dict[str, Any]
"""a stored line: see LabeledDocument and, of several labels, DocumentLabels"""


class Beside(NamedTuple):
    """Sources of the extra fields of labeled documents."""

    ids: Ids
    fields: StoredFields


_decoder = msgspec.json.Decoder(Line)
_encode_lines = msgspec.json.Encoder().encode_lines


def label_columns(path: Path, beside: Beside | None, separator: str | None = None) -> list[Column]:
    """The columns of the table. An extra field that is called as one of the others has "fields." before its name.

    Several labels are lists, or texts with the separator between them; raises InvalidRequest where it cannot part them.
    """
    with path.open("rb") as lines:
        first = lines.readline()
    line = _decoder.decode(first) if first else {}
    if "labels" in line:
        given = {label for block, _ in _blocks(path, None) for each in block for label in each["labels"]}
        if separator is not None:
            check_separator(given, separator)
        own = [Column("id", "text"), Column("labels", "integers" if int in map(type, given) else "texts")]
    else:
        label = Column("label", "integer" if isinstance(line.get("label"), int) else "text")
        own = [Column("id", "text"), label, Column("score", "number"), Column("probability", "number")]
    return columns_beside(own, [] if beside is None else beside.fields.names)


def label_rows(path: Path, beside: Beside | None, separator: str | None = None) -> Iterator[Row]:
    """The rows of the table, as ``label_columns`` has its columns."""
    for block, fields in _blocks(path, beside):
        for line, found in zip(block, fields, strict=True):
            if "labels" in line:
                labels = line["labels"]
                own: Row = (line["id"], labels if separator is None else joined(labels, separator))
            else:
                own = (line["id"], line["label"], line["score"], line["probability"])
            yield (
                *own,
                *((found.get(name) for name in beside.fields.names) if beside else ()),
            )


def label_lines(path: Path, beside: Beside) -> Iterator[bytes]:
    """The lines with the extra fields, in blocks."""
    for block, fields in _blocks(path, beside):
        yield _encode_lines([{**line, "fields": found} for line, found in zip(block, fields, strict=True)])


def _blocks(path: Path, beside: Beside | None) -> Iterator[tuple[list[Line], list[dict[str, Any]]]]:
    """Lines and the extra fields of their documents.

    Both are in the order of the dataset, so that its ids are read once.
    """
    left = enumerate(beside.ids) if beside else iter(())
    with path.open("rb") as lines:
        while block := list(islice(lines, _BLOCK_LINES)):
            found = _decoder.decode_lines(b"".join(block))
            if beside is None:
                yield found, [{}] * len(found)
                continue
            positions = [_position(line["id"], left) for line in found]
            yield found, list(beside.fields.taken(np.array(positions, np.int64)))


def _position(wanted: str, left: Iterator[tuple[int, str]]) -> int:
    for position, id in left:
        if id == wanted:
            return position
    raise StoreUnavailable(f"the labels name the document {wanted!r}, which the dataset of the job does not have")
