"""Version numbers in a path. Like an invalid id, an invalid number is answered with 404."""

from typing import Annotated, Any

from fastapi import Path

from storage.errors import NotFound

_END = 2**31
_MOST_DIGITS = len(str(_END))
"""Digits that are parsed at most: Python refuses to parse thousands."""
NUMBER: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": _END - 1}
VersionNumber = Annotated[str, Path(json_schema_extra=NUMBER)]
"""Type of the path parameter, as text."""


def checked_number(name: str, number: str) -> int:
    """The number of a version; raises NotFound."""
    if not (len(number) <= _MOST_DIGITS and number.isascii() and number.isdecimal() and 1 <= int(number) < _END):
        raise NotFound("model version", f"{name}/{number}")
    return int(number)
