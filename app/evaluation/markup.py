"""HTML and SVG made of elements, so that whatever is not markup is escaped."""

import re
from html import escape

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""characters that make a file no XML, however they are written"""


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: str | float) -> Markup:
    """An element with its end tag; ``class_`` is the attribute class, ``stroke_width`` is stroke-width. Content that is no Markup is escaped."""
    named = "".join(f' {key.strip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{named}>{joined(*content)}</{name}>")


def joined(*content: str) -> Markup:
    """One after another, what is no Markup escaped."""
    return Markup("".join(part if isinstance(part, Markup) else _text(part) for part in content))


def _value(value: str | float) -> str:
    return _text(value) if isinstance(value, str) else f"{value:.6g}"


def _text(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))
