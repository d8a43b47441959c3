"""Version numbers in a path: what is not one is the number of nothing, as an identifier that is not one is."""

from typing import Annotated, Any

from fastapi import Path

from workers.errors import NotFound

NUMBER: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
VersionNumber = Annotated[str, Path(json_schema_extra=NUMBER)]
"""As it is written in the path."""


def checked_number(name: str, number: str) -> int:
    """The number; raises NotFound."""
    if not (number.isascii() and number.isdecimal() and 1 <= int(number[:11]) < 2**31):
        raise NotFound("model version", f"{name}/{number}")
    return int(number)
