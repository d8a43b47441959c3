"""A JSON object as a struct, however large its raw fields are; large arrays and objects are cut at their own commas
into slices that are decoded one at a time.

A decoder of JSON holds the interpreter until it returns, and its objects take many times the memory of their text. So
of a body no more than a slice is decoded in one call. NumPy finds the commas, block by block, in time linear in the
text. Only the structure is looked at: every byte but the cuts is in a slice, so what is no JSON is found when the
slices are decoded.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.codecs.base import BLOCK_BYTES, Reserve
from app.codecs.json.text import InvalidJson, JsonText, decode_json, known_fields
from storage.errors import LimitExceeded

T = TypeVar("T")
Flags = NDArray[np.bool_]

_SCANNED_BYTES = BLOCK_BYTES // 2
"""Bytes that are scanned at a time. A slice ends with the last comma of such a block, so most slices are no longer than
BLOCK_BYTES."""
_SPACE_BYTES = b" \t\n\r"
_AT_BYTE = re.compile(r" \(byte \d+\)")
_CLOSING = {ord("["): ord("]"), ord("{"): ord("}")}
_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")


def trimmed(text: memoryview) -> memoryview:
    """The text without the space around it, which is passed in blocks: to pass it at once holds the interpreter."""
    while text and text[0] in _SPACE_BYTES:
        head = bytes(text[:_SCANNED_BYTES])
        text = text[len(head) - len(head.lstrip(_SPACE_BYTES)) :]
    while text and text[-1] in _SPACE_BYTES:
        tail = bytes(text[-BLOCK_BYTES:])
        text = text[: len(text) - len(tail) + len(tail.rstrip(_SPACE_BYTES))]
    return text


def elements(text: memoryview) -> Iterator[memoryview]:
    """The elements of an array, or the members of an object, without space around them. ``text`` has none, either.

    Raises InvalidJson if it is neither array nor object, or does not end as one.
    """
    scan, start, alone = _Commas(text), 1, True
    for commas in scan:
        for comma in commas.tolist():
            yield trimmed(text[start:comma])
            start, alone = comma + 1, False
    last = trimmed(text[start : scan.end])
    if last or not alone:
        yield last


def slices(text: memoryview, longest: int, what: str) -> Iterator[bytes]:
    """The elements of an array, or the members of an object, in slices of some BLOCK_BYTES, without the brackets and
    the commas between slices.

    A text that is no longer than a block is one slice. ``text`` has no space around it. Raises InvalidJson as
    ``elements``; LimitExceeded for a single element of more than ``longest`` bytes, and some more, which is called
    ``what``.
    """
    if len(text) <= BLOCK_BYTES:
        _check_brackets(text)
        if trimmed(text[1:-1]):
            yield bytes(text[1:-1])
        return
    scan, start, alone = _Commas(text), 1, True
    for commas in scan:
        if len(commas):
            end = int(commas[-1])
            yield _slice(text[start:end], longest, what)
            start, alone = end + 1, False
        elif scan.at - start > longest + BLOCK_BYTES:
            raise LimitExceeded(f"bytes in {what}", longest)
    if trimmed(text[start : scan.end]) or not alone:
        yield _slice(text[start : scan.end], longest, what)


def decoded_slices(decode: Callable[[JsonText], T], text: memoryview, longest: int, what: str) -> Iterator[T]:
    """Each slice of ``text`` as an array or object of its own, decoded. Raises InvalidJson, LimitExceeded."""
    opening, closing = bytes(text[:1]), bytes(text[-1:])
    for each in slices(text, longest, what):
        try:
            yield decode_json(decode, opening + each + closing)
        except InvalidJson as error:
            # positions would be those in the slice, of which the client knows nothing
            raise InvalidJson(
                _AT_BYTE.sub("", error.detail) if len(text) > BLOCK_BYTES else error.detail, error.field
            ) from None


def _slice(text: memoryview, longest: int, what: str) -> bytes:
    if len(text) > longest + 2 * BLOCK_BYTES:
        raise LimitExceeded(f"bytes in {what}", longest)
    if not trimmed(text):
        raise InvalidJson("JSON is malformed: something must follow and precede every comma")
    return bytes(text)


def _check_brackets(text: memoryview) -> None:
    if not text or text[0] not in _CLOSING:
        raise InvalidJson("expected an array or an object")
    if len(text) < 2 or text[-1] != _CLOSING[text[0]]:
        raise InvalidJson("JSON is malformed: the text ends too early")


@cache
def _steps_of(opening: bytes, closing: bytes) -> NDArray[np.int8]:
    """By how much each byte deepens the text, shape (256,)."""
    steps = np.zeros(256, np.int8)
    steps[list(opening)], steps[list(closing)] = 1, -1
    return steps


class Scan:
    """Reads text block by block: what is outside strings, and how many brackets are open.

    Three facts go from a block to the next: how deep the text is nested, whether it is inside a string, whether a
    backslash escapes what follows.
    """

    def __init__(self, opening: bytes, closing: bytes) -> None:
        """Of brackets those count that are ``opening`` or ``closing``."""
        self.depth = 0
        self.in_string = False
        self._escaped = False
        self._steps = _steps_of(opening, closing)

    def read(self, block: NDArray[np.uint8]) -> tuple[Flags, NDArray[np.int32]]:
        """Whether each byte of a block that is not empty is outside all strings, and how many brackets are open after
        it. A quote counts as outside where it ends a string.
        """
        quotes = block == _QUOTE
        quotes[self._escapes(block)] = False
        inside = np.logical_xor.accumulate(quotes) ^ self.in_string
        depths = np.cumsum(self._steps[block] * ~inside, dtype=np.int32) + np.int32(self.depth)
        self.in_string, self.depth = bool(inside[-1]), int(depths[-1])
        return ~inside, depths

    def _escapes(self, block: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Positions of the bytes that a backslash escapes: that follow an odd number of them."""
        backslashes = np.flatnonzero(block == _BACKSLASH)
        first = np.zeros(int(self._escaped), np.int64)
        backslashes = backslashes[int(np.searchsorted(backslashes, len(first))) :]
        # of backslashes in a row, every second one is itself escaped
        begins = np.flatnonzero(np.diff(backslashes, prepend=-2) != 1)
        order = np.arange(len(backslashes)) - np.repeat(begins, np.diff(begins, append=len(backslashes)))
        escaped = np.concatenate([first, backslashes[order % 2 == 0] + 1])
        self._escaped = bool(len(escaped) and escaped[-1] == len(block))
        return escaped[: len(escaped) - self._escaped]


class _Commas:
    """Finds the commas between the elements of one array or object."""

    def __init__(self, text: memoryview) -> None:
        _check_brackets(text)
        self.at = 0
        """End of the text that was scanned."""
        self.end = len(text) - 1
        """Position of the closing bracket."""
        self._text = text

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        """Positions of the commas in each block. Raises InvalidJson if the brackets do not match in number."""
        text, scan = np.frombuffer(self._text, np.uint8), Scan(b"[{", b"]}")
        while self.at < len(text):
            block, start = text[self.at : self.at + _SCANNED_BYTES], self.at
            self.at += len(block)
            outside, depth = scan.read(block)
            ended = np.flatnonzero(depth == 0)
            if len(ended) and start + int(ended[0]) < self.end:
                raise InvalidJson("JSON is malformed: there is text after the end of the value")
            yield np.flatnonzero((block == _COMMA) & (depth == 1) & outside) + start
        if scan.depth or scan.in_string:
            raise InvalidJson("JSON is malformed: the text ends too early")


StructT = TypeVar("StructT", bound=msgspec.Struct)

OBJECT_BYTES = 33
"""Bytes of memory that decoded JSON takes for each byte of its text, at most: of `{"":{}},` these are two dicts."""
_NAME = re.compile(rb'"([^"\\]{1,64}+)"[ \t\n\r]*+:')
_NAMES = re.compile(r"[^.\[\]]*[^.\[\]\d][^.\[\]]*")
"""Names in the path of a field, without positions in arrays."""
_ABSENT = (b"", b"null")


def is_given(field: msgspec.Raw) -> bool:
    """Whether a raw field is there and not null."""
    return len(field) > len(b"null") or bytes(field) not in _ABSENT


def decode_struct(text: bytes | memoryview, kind: type[StructT], reserve: Reserve) -> StructT:
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


def decode_structs(text: memoryview, kind: type[StructT], most: int, reserve: Reserve) -> list[StructT]:
    """The structs of a JSON array, as ``decode_struct``; the array has no space around it.

    Raises also InvalidJson if there are more than ``most``.
    """
    if len(text) <= BLOCK_BYTES:
        reserve(OBJECT_BYTES * len(text))
        found: list[StructT] = decode_json(_decoder(list[kind]), bytes(text))  # type: ignore[valid-type]
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


def _decoded(text: bytes | memoryview, kind: type[StructT]) -> StructT:
    try:
        found: StructT = decode_json(_decoder(kind), bytes(text))
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
