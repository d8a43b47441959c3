"""A JSON object as a struct, however large its raw fields are: see ``app.codecs.json.slices``."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any, TypeVar

import msgspec

from app.codecs.base import BLOCK_BYTES, Reserve
from app.codecs.json.slices import elements, trimmed
from app.codecs.json.text import InvalidJson, JsonText, decode_json, known_fields
from storage.errors import LimitExceeded

T = TypeVar("T", bound=msgspec.Struct)

OBJECT_BYTES = 33
"""Bytes of memory that decoded JSON takes for each byte of its text, at most: of `{"":{}},` these are two dicts."""
_NAME = re.compile(rb'"([^"\\]{1,64}+)"[ \t\n\r]*+:')
_NAMES = re.compile(r"[^.\[\]]*[^.\[\]\d][^.\[\]]*")
"""Names in the path of a field, without positions in arrays."""
_ABSENT = (b"", b"null")


def is_given(field: msgspec.Raw) -> bool:
    """Whether a raw field is there and not null."""
    return bytes(memoryview(field)[:8]) not in _ABSENT


def decode_struct(text: bytes | memoryview, kind: type[T], reserve: Reserve) -> T:
    """The struct. Its raw fields refer to the text; all others together may have BLOCK_BYTES, which ``reserve``
    reserves.

    Raises InvalidJson with the field, LimitExceeded, and what ``reserve`` raises.
    """
    raw = _raw_fields(kind)
    if len(text) <= BLOCK_BYTES:
        found = _decoded(text, kind)
        reserve(OBJECT_BYTES * max(0, len(text) - sum(len(getattr(found, name)) for name in raw.values())))
        return found
    small, large, size = [], {}, 0
    for member in elements(trimmed(memoryview(text))):
        name = _NAME.match(member)
        if name and name[1] in raw:
            large[raw[name[1]]] = msgspec.Raw(trimmed(member[name.end() :]))
            member = memoryview(name[0] + b"null")
        small.append(member)
        size += len(member) + 1
        if size > BLOCK_BYTES:
            where = (
                f"the field {name[1].decode(errors='replace')}"
                if name and len(member) > BLOCK_BYTES // 2
                else "the fields of the body"
            )
            raise LimitExceeded(f"bytes in {where}", BLOCK_BYTES)
    reserve(OBJECT_BYTES * size)
    found = _decoded(b"{" + b",".join(small) + b"}", kind)
    for field, value in large.items():
        setattr(found, field, value)
    return found


def decode_structs(text: memoryview, kind: type[T], most: int, reserve: Reserve) -> list[T]:
    """The structs of a JSON array, as ``decode_struct``; the array has no space around it.

    Raises also InvalidJson if there are more than ``most``.
    """
    if len(text) <= BLOCK_BYTES:
        reserve(OBJECT_BYTES * len(text))
        found: list[T] = decode_json(_decoder(list[kind]), bytes(text))  # type: ignore[valid-type]
    else:
        found = []
        for each in islice(elements(text), most + 1):
            try:
                found.append(decode_struct(each, kind, reserve))
            except InvalidJson as error:
                raise InvalidJson(error.detail, f"[{len(found)}].{error.field}".removesuffix(".")) from None
    if len(found) > most:
        raise InvalidJson(f"has more than {most} elements")
    return found


def _decoded(text: bytes | memoryview, kind: type[T]) -> T:
    try:
        found: T = decode_json(_decoder(kind), bytes(text))
        return found
    except InvalidJson as error:
        raise InvalidJson(error.detail + _advice(kind, error), error.field) from None


@cache
def _decoder(kind: Any) -> Callable[[JsonText], Any]:
    return msgspec.json.Decoder(kind).decode


@cache
def _raw_fields(kind: type[msgspec.Struct]) -> Mapping[bytes, str]:
    """Names of the raw fields of a struct by their names in JSON."""
    return {each.encode_name.encode(): each.name for each in msgspec.structs.fields(kind) if each.type is msgspec.Raw}


def _advice(kind: type[Any], error: InvalidJson) -> str:
    """Advice: the values of the field if they are few, or the known fields; else empty."""
    of: msgspec.inspect.Type | None = msgspec.inspect.type_info(kind)
    *before, last = _NAMES.findall(error.field) or [""]
    for name in before:
        of = _fields(of).get(name)
    choices = _choices(_fields(of).get(last))
    if choices and error.detail.startswith("unknown value"):
        return f"; it is one of {', '.join(choices)}"
    return known_fields(error.detail, _fields(of))


def _fields(of: msgspec.inspect.Type | None) -> Mapping[str, msgspec.inspect.Type]:
    """The fields of a struct, or of the structs that a list holds, by their names in JSON."""
    if isinstance(of, msgspec.inspect.UnionType):
        return {name: field for each in of.types for name, field in _fields(each).items()}
    if isinstance(of, msgspec.inspect.ListType):
        return _fields(of.item_type)
    return {each.encode_name: each.type for each in of.fields} if isinstance(of, msgspec.inspect.StructType) else {}


def _choices(of: msgspec.inspect.Type | None) -> list[str]:
    """The values of a field of few values, or of its elements; empty for other fields."""
    match of:
        case msgspec.inspect.LiteralType():
            return [str(value) for value in of.values]
        case msgspec.inspect.ListType():
            return _choices(of.item_type)
        case msgspec.inspect.UnionType():
            found = [value for each in of.types for value in _choices(each)]
            return (
                [*found, "a number"]
                if found and any(isinstance(each, msgspec.inspect.IntType) for each in of.types)
                else found
            )
    return []
