"""Parts of JSON documents as rows: named features and dense vectors, a batch at a time.

All vectors of a part have the same number of numbers."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain, zip_longest
from typing import Annotated, Any, Protocol

import msgspec
import numpy as np
from msgspec import Meta

from app.codecs.json.text import InvalidJson, decode_json
from app.codecs.numbers import rows_of
from core.documents.kinds import DENSE, NamedRows, field_of
from core.documents.rows import SparseRows, without_zeros
from storage.records import MAX_TEXT

Vectors = Sequence[Sequence[float] | None]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SHOWN = 40
_SORTED = 1 << 13
_all = msgspec.json.Decoder(list[dict[Name, float]])
_one = msgspec.json.Decoder(dict[Name, float])
_any = msgspec.json.Decoder(dict[str, Any])


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


def named_rows(objects: Sequence[msgspec.Raw]) -> NamedRows:
    """The rows of these objects.

    Names are numbered in the order of their first use; raises InvalidJson if an object is wrong.
    """
    text = b"[" + b",".join(objects) + b"]"
    features = decode_json(_all.decode, text)
    lengths = np.fromiter(map(len, features), np.int64, len(features))
    # decoding drops repeated names, so colons are counted: all values are numbers, so each colon outside strings
    # follows a name
    if _STRING.sub(b"", text).count(b":") != lengths.sum():
        raise InvalidJson("a name is repeated", "features")
    indptr = np.zeros(len(features) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    columns: dict[str, int] = {}
    # objects have no order: sorted by name, equal documents become equal bytes
    ordered = [_by_name(each) for each in features]
    indices = np.fromiter(
        (columns.setdefault(name, len(columns)) for each in ordered for name, _ in each), np.uint32, int(indptr[-1])
    )
    values = np.fromiter((value for each in ordered for _, value in each), np.float64, int(indptr[-1]))
    return NamedRows(rows_of(indptr, indices, values, len(columns)), list(columns))


def _by_name(features: dict[str, float]) -> list[tuple[str, float]]:
    """The features in the order of their names.

    Very many are sorted in parts: sorting holds the interpreter until it returns.
    """
    items = list(features.items())
    if len(items) <= _SORTED:
        return sorted(items)
    return list(merge(*(sorted(items[start : start + _SORTED]) for start in range(0, len(items), _SORTED))))


def feature_fault(text: msgspec.Raw) -> tuple[str, str] | None:
    """Field and detail of the fault of one object, or None."""
    detail = _detail(bytes(text))
    return None if detail is None else ("features", detail)


def _detail(text: bytes) -> str | None:
    try:
        named = decode_json(_any.decode, text)
    except InvalidJson as error:
        return error.detail if text.startswith(b"{") else "must be an object of names and numbers"
    for name, value in named.items():
        if not 1 <= len(name) <= MAX_TEXT:
            return f"the name {name[:_SHOWN]!r} must have 1 to {MAX_TEXT} characters"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"the value of {name[:_SHOWN]!r} is not a number"
    try:
        decode_json(_one.decode, text)
    except InvalidJson as error:
        return error.detail
    times = Counter(msgspec.json.decode(name, type=str) for name in _STRING.findall(text))
    repeated = next((name for name, count in times.items() if count > 1), None)
    return None if repeated is None else f"the name {repeated[:_SHOWN]!r} is repeated"
