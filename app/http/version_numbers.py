"""Version numbers in a path: what is not one is the number of nothing, as an identifier that is not one is."""

from typing import Annotated, Any

from fastapi import Path, Request

from workers.errors import NotFound

_END = 2**31
_MOST_DIGITS = len(str(_END))
"""no more are turned into a number: Python refuses thousands of them"""
NUMBER: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": _END - 1}
VersionNumber = Annotated[str, Path(json_schema_extra=NUMBER)]
"""As it is written in the path."""


def checked_number(name: str, number: str) -> int:
    """The number; raises NotFound."""
    if not (len(number) <= _MOST_DIGITS and number.isascii() and number.isdecimal() and 1 <= int(number) < _END):
        raise NotFound("model version", f"{name}/{number}")
    return int(number)


def version_reference(request: Request) -> str:
    """Of the version that a path names, for routes that read it from the request; raises NotFound."""
    name = request.path_params["name"]
    return f"{name}/{checked_number(name, request.path_params['number'])}"
