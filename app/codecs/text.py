"""The one door through which JSON text comes in."""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")

MARK = b"\xef\xbb\xbf"
"""the byte order mark in UTF-8"""

_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_NAMED = re.compile(r"(?:unknown|required) field `([^`]*)`")
_CUT = "Input data was truncated"
"""says msgspec of half a surrogate pair before the end of a string, too"""


class WrongJson(Exception):
    """Text that is not JSON, or not of the shape asked for: what is wrong, and the path of the field, empty where none is known."""

    def __init__(self, detail: str, field: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field


def decoded(decode: Callable[[bytes | bytearray], T], text: bytes | bytearray) -> T:
    """What a decoder's method makes of the text; whatever is wrong with it is raised as WrongJson."""
    try:
        return decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        detail, _, path = str(error).partition(" - at `$")
        half = _HALF.search(text) if detail == _CUT else None
        if text.startswith(MARK):
            detail = "JSON is malformed: a byte order mark may stand at the beginning of a body alone"
        if half:
            detail = f"JSON is malformed: {half[0].decode()} is half of a character, and the other half does not follow"
        named = _NAMED.search(detail)
        parts = [path.removesuffix("`").removeprefix("."), named.group(1) if named else ""]
        raise WrongJson(detail, ".".join(filter(None, parts))) from None
    except RecursionError:
        raise WrongJson("JSON is nested too deeply") from None
