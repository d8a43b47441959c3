"""Decoding of JSON text, with errors that name the field, in the words of people who send it.

All JSON that the gateway receives is decoded here."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from app.errors import InvalidRequest
from core.errors import did_you_mean
from storage.errors import LimitExceeded
from storage.records import MAX_TEXT

T = TypeVar("T")
JsonText = bytes | bytearray

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Byte order mark of UTF-8."""

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""an escape, or the two of a character; ``half`` is one of two alone"""
_STRING_OF = re.compile(rb'"([^"\\]{1,64}+)"\s*:\s*"(?:[^"\\]++|\\.)*+\Z', re.DOTALL)
_NAMED = re.compile(r"(unknown|required) field `([^`]*)`")
_UNKNOWN = re.compile(r"^unknown field '([^']*)'")
STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
"""a string of JSON with its quotes"""
_FIELD = re.compile(rb'"([^"\\]{1,64}+)"\s*:')
_NOT_FINITE = re.compile(rb'(?<![\w."\\])\+?(-?(?:NaN|Infinity|nan|inf))(?![\w."])')
"""a number that JSON lacks, and no end of a string"""
_BYTE = re.compile(r"JSON is malformed: .*\(byte (\d+)\)")
_FIRST_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]{1,%d}+)"' % MAX_TEXT)
_TOO_LONG = "send it in parts, or have HALFMOON_MAX_DOCUMENT_BYTES raised"
_AT, _KEY_IN = " - at `$", " - at `key` in `$"
_TYPES: Mapping[str, str] = {
    "str": "a text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "object": "an object",
    "array": "an array",
}
_EXPECTED = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`| (of length )?([<>]=?) (\S+))?")
_FIELD_OF = re.compile(r"Object (?:contains unknown|missing required) field `([^`]*)`")
_TRAILING = re.compile(r"JSON is malformed: trailing characters( \(byte \d+\))?")
TRUNCATED = "Input data was truncated"
"""Message of msgspec, which it also gives for half a surrogate pair at the end of a string."""
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_OF_LENGTH = {"str": "characters", "array": "elements", "object": "fields"}


class InvalidJson(InvalidRequest):
    """Text that is not JSON, or not of the expected shape. ``field`` is the path of the field, empty if unknown."""

    def __init__(self, detail: str, field: str = "") -> None:
        super().__init__(field, detail)


def decode_json(decode: Callable[[JsonText], T], text: JsonText) -> T:
    """The decoded text; raises InvalidJson."""
    try:
        return decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _wrong(error, text) from None
    except RecursionError:
        raise InvalidJson("JSON is nested too deeply") from None


def decode_or_none(decode: Callable[[JsonText], T], text: JsonText) -> T | None:
    """The decoded text; None if it is not valid. Why is not looked for, which takes longer than to decode."""
    try:
        return decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def known_fields(detail: str, known: Iterable[str]) -> str:
    """Advice that lists the known fields, if the detail is about an unknown one; else empty."""
    named = _UNKNOWN.search(detail)
    names = list(known)
    return f"{did_you_mean(named[1], names) or ';'} known are {', '.join(names)}" if named else ""


def _wrong(error: Exception, text: JsonText) -> InvalidJson:
    detail, _, path = str(error).replace(_KEY_IN, _AT).partition(_AT)
    if text.startswith(BYTE_ORDER_MARK):
        return InvalidJson("JSON is malformed: a byte order mark is allowed only at the beginning of a body")
    if isinstance(error, UnicodeDecodeError):
        # the error of msgspec counts from the beginning of a string
        try:
            text.decode()
        except UnicodeDecodeError as first:
            detail = f"the byte 0x{text[first.start]:02x} is not UTF-8; send the text in UTF-8"
            return InvalidJson(detail, _string_at(text, first.start))
    half = (
        next((each for each in _ESCAPE.finditer(text) if each["half"]), None)
        if detail == TRUNCATED or "surrogate" in detail
        else None
    )
    if half:
        detail = (
            f"JSON is malformed: {half[0].decode()} is half of a character, and the other half does not follow; "
            "send the text in UTF-8"
        )
        return InvalidJson(detail, _string_at(text, half.start()))
    at = int(byte[1]) if (byte := _BYTE.match(detail)) else -12
    found = _NOT_FINITE.search(text, max(0, at - 5), at + 12)
    if found and found.start() <= at <= found.end() + 1:
        named = _FIELD.findall(text, 0, found.start(1))
        return InvalidJson(
            f"JSON is malformed: {found[1].decode()} is not a value of JSON; send null, or leave the field out",
            named[-1].decode(errors="replace") if named else "",
        )
    shape = _NAMED.search(detail)
    detail = in_words(detail)
    parts = [path.removesuffix("`").removeprefix("."), shape[2] if shape else ""]
    return InvalidJson(detail, ".".join(filter(None, parts)))


def _string_at(text: JsonText, position: int) -> str:
    """Name of the field with its string at this position; empty if unknown."""
    found = _STRING_OF.search(text, 0, position)
    return found[1].decode(errors="replace") if found else ""


def in_words(detail: str) -> str:
    """The message, in words; as it is if it is of another kind."""
    if found := _EXPECTED.fullmatch(detail):
        kind, got, of_length, sign, bound = found.groups()
        if got is not None:
            # a number where only integers may be: it is its fraction that is wrong
            given = "a fraction" if got == "float" and "float" not in kind.split(" | ") else _TYPES.get(got, got)
            return f"must be {_any_of(kind)}, not {given}"
        if sign is None:
            return f"must be {_any_of(kind)}"
        if not of_length:
            return f"must be {_BOUNDS[sign]} {bound}"
        things = _OF_LENGTH.get(kind, "elements")
        return f"must have {_BOUNDS[sign]} {bound} {things.removesuffix('s') if bound == '1' else things}"
    if found := _FIELD_OF.fullmatch(detail):
        return f"unknown field '{found[1]}'" if "unknown" in found[0] else "is missing"
    if detail.startswith("Invalid RFC3339"):
        return "must be a time such as 2026-01-31T12:00:00Z"
    if "matching regex" in detail:
        return "has characters that it may not have"
    if detail == "Number out of range":
        return "a number is out of range: beyond 1.8e308, the largest of float64"
    if detail == TRUNCATED:
        return "JSON is malformed: the text ends too early"
    if found := _TRAILING.fullmatch(detail):
        return f"JSON is malformed: something follows its end{found[1]}"
    return detail.replace("Invalid enum value", "unknown value")


def _any_of(kinds: str) -> str:
    given = kinds.split(" | ")
    # null stands for a field that may as well be left out
    names = [_TYPES.get(kind, kind) for kind in given if kind != "null" and not (kind == "int" and "float" in given)]
    return " or ".join(names) if names else "null"


def document_too_long(text: bytes | bytearray, where: str, most: int) -> LimitExceeded:
    """The error for a document of more than ``most`` bytes; ``text`` is its beginning."""
    name = id_in(text)
    return LimitExceeded(
        f"bytes in document {name}, {where}" if name else f"bytes in the document {where}", most, _TOO_LONG
    )


class _Identified(Struct):
    id: Any = None


_identified = msgspec.json.Decoder(_Identified)


def id_in(text: bytes | bytearray) -> str:
    """The id in the JSON of a document; in malformed JSON it is found if it is the first field.

    Empty if there is none.
    """
    found = decode_or_none(_identified.decode, text)
    if found is None:
        first = _FIRST_ID.match(text)
        return first[1].decode(errors="replace") if first else ""
    return str(found.id)[:MAX_TEXT] if isinstance(found.id, str | int) and not isinstance(found.id, bool) else ""
