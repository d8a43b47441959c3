"""A labeling configuration of Label Studio, read as the choice of a class of a text."""

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, NamedTuple

from core.errors import HalfmoonError

_TEXTS = ("text", "hypertext")
_MAX_CHARACTERS = 1 << 18
"""characters of a configuration; the parser takes time that grows faster than the text"""
_MAX_FIELD = 256
"""characters of the name of a field"""


class NotTextChoice(HalfmoonError):
    """The configuration has no choice of a class of a text."""


class TextChoice(NamedTuple):
    """A ``Choices`` tag, and the ``Text`` tag that it is about."""

    from_name: str
    to_name: str
    field: str
    """field of the data of a task that has the text"""
    values: frozenset[str]
    """values of the choices, as results have them; empty if tasks bring their own"""
    several: bool
    """whether a task may have several choices"""

    def text_of(self, data: Mapping[str, Any]) -> str | None:
        """The text of a task by its data, None if it has none."""
        found: Any = data
        for name in self.field.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found if isinstance(found, str) else None

    def result(self, labels: Sequence[str]) -> list[dict[str, Any]]:
        """The result that says these labels, of which others than the choices are left out; empty without any."""
        chosen = [label for label in labels if not self.values or label in self.values]
        value = {"from_name": self.from_name, "to_name": self.to_name, "type": "choices", "value": {"choices": chosen}}
        return [value] if chosen else []


def text_choice(config: str) -> TextChoice:
    """The first choice of a class of a text in a configuration. Raises NotTextChoice."""
    if len(config) > _MAX_CHARACTERS:
        raise NotTextChoice("the labeling configuration is too long")
    tags = _Tags()
    tags.feed(config)
    for choices, values in tags.choices:
        name, about = choices.get("name"), choices.get("toname")
        text = tags.texts.get(about or "", "")
        if name and about and text.startswith("$") and len(text) <= _MAX_FIELD:
            own = frozenset(() if choices.get("value") else values)
            return TextChoice(name, about, text[1:], own, choices.get("choice") == "multiple")
    raise NotTextChoice(
        'the labeling configuration has no <Choices toName="…"> about a <Text value="$…">; Halfmoon chooses '
        "classes of texts"
    )


class _Tags(HTMLParser):
    """The tags of a configuration that matter here.

    It is read as HTML, whose parser expands no entities that a document declares.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.choices: list[tuple[dict[str, str], list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag; names of tags and attributes come in lower case."""
        given = {name: value for name, value in attrs if value is not None}
        if tag in _TEXTS:
            self.texts[given.get("name", "")] = given.get("value", "")
        elif tag == "choices":
            self.choices.append((given, []))
        elif tag == "choice" and self.choices and (value := given.get("alias") or given.get("value")):
            self.choices[-1][1].append(value)
