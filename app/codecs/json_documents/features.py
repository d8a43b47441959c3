"""Named features: JSON objects of names and numbers, parsed a batch at a time."""

import re
from collections import Counter
from collections.abc import Sequence
from heapq import merge
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from app.codecs.json.text import InvalidJson, decode_json
from app.codecs.numbers import rows_of
from core.documents.kinds import NamedRows
from storage.records import MAX_TEXT

Name = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SHOWN = 40
_SORTED = 1 << 13
_all = msgspec.json.Decoder(list[dict[Name, float]])
_one = msgspec.json.Decoder(dict[Name, float])
_any = msgspec.json.Decoder(dict[str, Any])


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
    """Field and detail of what is wrong with one object, or None."""
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
