"""Decoding of JSON text, with errors that name the field. All JSON that the gateway receives is decoded here."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from app.codecs.json.words import TRUNCATED, in_words
from core.spelling import did_you_mean

T = TypeVar("T")
JsonText = bytes | bytearray

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Byte order mark of UTF-8."""

_HALF = re.compile(
    rb"(?<!\\)(?:\\\\)*+(\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_STRING_OF = re.compile(rb'"([^"\\]{1,64}+)"\s*:\s*"(?:[^"\\]++|\\.)*+\Z', re.DOTALL)
_NAMED = re.compile(r"(unknown|required) field `([^`]*)`")
_UNKNOWN = re.compile(r"^unknown field '([^']*)'")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_FIELD = re.compile(rb'"([^"\\]{1,64}+)"\s*:')
_NOT_FINITE = re.compile(rb"(?<![\w.])(-?(?:NaN|Infinity|nan|inf))(?![\w.])")
_MALFORMED = "JSON is malformed"
_AT, _KEY_IN = " - at `$", " - at `key` in `$"


class InvalidJson(Exception):
    """Text that is not JSON, or not of the expected shape. ``field`` is the path of the field, empty if unknown."""

    def __init__(self, detail: str, field: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field


def decode_json(decode: Callable[[JsonText], T], text: JsonText) -> T:
    """The decoded text; raises InvalidJson."""
    try:
        return decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _wrong(error, text) from None
    except RecursionError:
        raise InvalidJson("JSON is nested too deeply") from None


def known_fields(detail: str, known: Iterable[str]) -> str:
    """Advice that lists the known fields, if the detail is about an unknown one; else empty."""
    named = _UNKNOWN.search(detail)
    names = list(known)
    return f"{did_you_mean(named[1], names) or ';'} known are {', '.join(names)}" if named else ""


def _wrong(error: Exception, text: JsonText) -> InvalidJson:
    detail, _, path = str(error).replace(_KEY_IN, _AT).partition(_AT)
    if text.startswith(BYTE_ORDER_MARK):
        return InvalidJson("JSON is malformed: a byte order mark is allowed only at the beginning of a body")
    if isinstance(error, UnicodeDecodeError) and (position := _first_not_utf8(text)) is not None:
        return InvalidJson(
            f"the byte 0x{text[position]:02x} is not UTF-8; send the text in UTF-8", _string_at(text, position)
        )
    half = _HALF.search(text) if detail == TRUNCATED or "surrogate" in detail else None
    if half:
        detail = (
            f"JSON is malformed: {half[1].decode()} is half of a character, and the other half does not follow; "
            "send the text in UTF-8"
        )
        return InvalidJson(detail, _string_at(text, half.start(1)))
    if detail.startswith(_MALFORMED) and (found := _NOT_FINITE.search(_STRING.sub(_blank, bytes(text)))):
        word = text[found.start(1) : found.end(1)].decode()
        return InvalidJson(
            f"JSON is malformed: {word} is not a value of JSON; send null, or leave the field out",
            _field_before(text, found.start(1)),
        )
    named = _NAMED.search(detail)
    detail = in_words(detail)
    parts = [path.removesuffix("`").removeprefix("."), named[2] if named else ""]
    return InvalidJson(detail, ".".join(filter(None, parts)))


def _blank(string: re.Match[bytes]) -> bytes:
    """A string of the same length without anything in it."""
    return b'"' + b" " * (len(string[0]) - 2) + b'"'


def _field_before(text: JsonText, position: int) -> str:
    """Name of the last field before this position; empty if unknown."""
    found = _FIELD.findall(text, 0, position)
    return str(found[-1].decode(errors="replace")) if found else ""


def _first_not_utf8(text: JsonText) -> int | None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _string_at(text: JsonText, position: int) -> str:
    """Name of the field whose string contains this position; empty if unknown."""
    found = _STRING_OF.search(text, 0, position)
    return found[1].decode(errors="replace") if found else ""
