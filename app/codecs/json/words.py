"""Messages of msgspec about the shape of JSON, in the words of people who send it."""

import re
from collections.abc import Mapping

_TYPES: Mapping[str, str] = {
    "str": "a text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "object": "an object",
    "array": "an array",
}
_NUMBERS = {"int", "float"}
_EXPECTED = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`| (of length )?([<>]=?) (\S+))?")
_FIELD = re.compile(r"Object (?:contains unknown|missing required) field `([^`]*)`")
_TRAILING = re.compile(r"JSON is malformed: trailing characters( \(byte \d+\))?")
TRUNCATED = "Input data was truncated"
"""Message of msgspec, which it also gives for half a surrogate pair at the end of a string."""
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_OF_LENGTH = {"str": "characters", "array": "elements", "object": "fields"}


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
    if found := _FIELD.fullmatch(detail):
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
