"""The labels that a job has given, in columns."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from halfmoon.display import table, tally
from halfmoon.records import Label


class LabeledDocument(Struct, frozen=True):
    """A document that was unlabeled, with its label."""

    id: str
    label: Label
    score: float
    probability: float | None
    fields: dict[str, Any] = {}
    """Extra fields of the document, if they were asked for."""


_COLUMNS = ("id", "label", "score", "probability")
_decoder = msgspec.json.Decoder(LabeledDocument)


class Labels:
    """The labels that a job has given to unlabeled documents."""

    def __init__(self, lines: list[LabeledDocument]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[LabeledDocument]:
        return iter(self._lines)

    def __repr__(self) -> str:
        return f"<Labels of {len(self)} documents: {tally(line.label for line in self._lines)}>"

    def columns(self) -> dict[str, list[Any]]:
        """Lists of ids, labels, scores and probabilities, and of the extra fields, if they were asked for."""
        extra = dict.fromkeys(name for line in self._lines for name in line.fields)
        beside = {
            f"fields.{name}" if name in _COLUMNS else name: [line.fields.get(name) for line in self._lines]
            for name in extra
        }
        return {name: [getattr(line, name) for line in self._lines] for name in _COLUMNS} | beside

    def to_dict(self) -> dict[str, Label]:
        """Labels by id of the document."""
        return {line.id: line.label for line in self._lines}

    def to_pandas(self) -> Any:
        """A DataFrame of pandas: id, label, score, probability, and the extra fields, if they were asked for."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A DataFrame of polars: the same columns."""
        import polars

        return polars.DataFrame(self.columns())

    def _repr_html_(self) -> str:
        rows = ((line.id, line.label, line.probability) for line in self._lines)
        return table(f"Labels of {len(self)} documents", ("id", "label", "probability"), rows)


def decode_lines(lines: bytes) -> list[LabeledDocument]:
    """The documents of complete lines of JSON."""
    return _decoder.decode_lines(lines)
