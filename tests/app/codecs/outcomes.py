"""Outcomes of parsing a body."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from app.codecs.base import Bounds
from app.codecs.transport.encodings import reserve_nothing
from app.errors import InvalidRequest, UnsupportedMediaType
from app.inference.service import InferBody
from app.inference.tensors import documents_of
from app.predictions.service import decode_documents
from core.documents.kinds import NamedRows, Rows, RowsOfKind, TextRows, parts_of
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from tests.app.codecs.good_bodies import CONTENT_TYPES

BOUNDS = Bounds(body_bytes=100_000, decompressed_bytes=200_000, document_bytes=2_000, documents=500, nonzeros=5_000)


REFUSALS = (InvalidDocuments, LimitExceeded, InvalidRequest, UnsupportedMediaType)


def parsed(media_type: str, blocks: Sequence[bytes], encoding: str = "identity") -> list[Rows]:
    headers = {"content-type": CONTENT_TYPES.get(media_type, media_type), "content-encoding": encoding}
    return [batch.rows for batch in decode_documents(blocks, headers, BOUNDS)]


def inferred(body: bytes) -> list[Rows]:
    """The documents in the tensors of a body."""
    try:
        given = msgspec.json.decode(body, type=InferBody)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest("inputs", str(error)) from error
    return [rows for rows in documents_of(given.inputs, BOUNDS, reserve_nothing) if rows is not None]


def as_documents(rows: Rows) -> list[Any]:
    """Each document in Python's own types, without parts that are empty: cuts decide whether a batch has them."""
    parts = {name: as_lists(part) for name, part in parts_of(rows).items()}
    return [
        {name: held for name, held in zip(parts, each, strict=True) if held}
        for each in zip(*parts.values(), strict=True)
    ]


def as_lists(rows: RowsOfKind) -> list[Any]:
    """One part of each document in Python's own types."""
    if isinstance(rows, TextRows):
        return list(rows)
    if isinstance(rows, NamedRows):
        names, rows = rows.names, rows.rows
        numbered = [{names[index]: value for index, value in row} for row in as_lists(rows)]
        assert all(len(row) == length for row, length in zip(numbered, np.diff(rows.indptr), strict=True))
        return numbered
    assert np.isfinite(rows.values).all()
    assert (np.diff(rows.indptr) >= 0).all()
    pairs = list(zip(rows.indices.tolist(), rows.values.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in pairwise(rows.indptr.tolist())]


def outcome(act: Callable[[], list[Rows]]) -> tuple[str, list[Any]]:
    """The outcome of a body, the same however it was cut."""
    try:
        found = act()
    except REFUSALS as error:
        return type(error).__name__, []
    return "documents", [document for rows in found for document in as_documents(rows)]


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in pairwise(edges)]
