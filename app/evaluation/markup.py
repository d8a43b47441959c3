"""HTML and SVG from elements; text that is not markup is escaped."""

import re
from html import escape

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML does not allow, not even escaped."""


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: str | float) -> Markup:
    """An element with its end tag.

    ``class_`` is the attribute class, ``stroke_width`` is stroke-width; content that is no Markup is escaped.
    """
    named = "".join(
        f' {key.strip("_").replace("_", "-")}="{_text(value if isinstance(value, str) else f"{value:.6g}")}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{named}>{joined(*content)}</{name}>")


def joined(*content: str) -> Markup:
    """The parts in a row; those that are no Markup are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else _text(part) for part in content))


def _text(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))
