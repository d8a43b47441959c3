"""The one door through which JSON text comes in."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

T = TypeVar("T")
Text = bytes | bytearray

MARK = b"\xef\xbb\xbf"
"""the byte order mark in UTF-8"""

_HALF = re.compile(
    rb"(?<!\\)(?:\\\\)*+(\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_STRING_OF = re.compile(rb'"([^"\\]{1,64}+)"\s*:\s*"(?:[^"\\]++|\\.)*+\Z', re.DOTALL)
_NAMED = re.compile(r"(unknown|required) field `([^`]*)`")
_CUT = "Input data was truncated"
"""says msgspec of half a surrogate pair before the end of a string, too"""


class WrongJson(Exception):
    """Text that is not JSON, or not of the shape asked for: what is wrong, and the path of the field, empty where none is known."""

    def __init__(self, detail: str, field: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field


def decoded(decode: Callable[[Text], T], text: Text) -> T:
    """What a decoder's method makes of the text; whatever is wrong with it is raised as WrongJson."""
    try:
        return decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _wrong(error, text) from None
    except RecursionError:
        raise WrongJson("JSON is nested too deeply") from None


def instead(detail: str, known: Iterable[str]) -> str:
    """What to send instead of a field that is not known."""
    named = _NAMED.search(detail)
    return f"; known are {', '.join(known)}" if named and named[1] == "unknown" else ""


def _wrong(error: Exception, text: Text) -> WrongJson:
    detail, _, path = str(error).partition(" - at `$")
    if text.startswith(MARK):
        return WrongJson("JSON is malformed: a byte order mark may stand at the beginning of a body alone")
    if isinstance(error, UnicodeDecodeError) and (place := _first_not_utf8(text)) is not None:
        return WrongJson(f"the byte 0x{text[place]:02x} is not UTF-8; send the text in UTF-8", _string_at(text, place))
    half = _HALF.search(text) if detail == _CUT or "surrogate" in detail else None
    if half:
        told = f"JSON is malformed: {half[1].decode()} is half of a character, and the other half does not follow; send the text in UTF-8"
        return WrongJson(told, _string_at(text, half.start(1)))
    named = _NAMED.search(detail)
    parts = [path.removesuffix("`").removeprefix("."), named[2] if named else ""]
    return WrongJson(detail, ".".join(filter(None, parts)))


def _first_not_utf8(text: Text) -> int | None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _string_at(text: Text, place: int) -> str:
    """Name of the field in whose string something stands, or nothing."""
    found = _STRING_OF.search(text, 0, place)
    return found[1].decode(errors="replace") if found else ""
