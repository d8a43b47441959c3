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
    label: Label | None = None
    score: float | None = None
    probability: float | None = None
    labels: list[Label] | None = None
    """All that it was given in place of label, by a job of several labels."""
    probabilities: dict[str, float] | None = None
    """Probabilities of these, and of others that are not unlikely."""
    fields: dict[str, Any] = {}
    """Extra fields of the document, if they were asked for."""


_COLUMNS = ("id", "label", "score", "probability")
_OF_SEVERAL = ("id", "labels", "probabilities")
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
        """Columns by name: id, label, score, probability, and the extra fields that were asked for.

        Documents of several labels have the columns id, labels (lists) and probabilities (dicts).
        """
        own = _OF_SEVERAL if any(line.labels is not None for line in self._lines) else _COLUMNS
        extra = dict.fromkeys(name for line in self._lines for name in line.fields)
        beside = {
            f"fields.{name}" if name in own else name: [line.fields.get(name) for line in self._lines] for name in extra
        }
        return {name: [getattr(line, name) for line in self._lines] for name in own} | beside

    def to_dict(self) -> dict[str, Any]:
        """Labels by id of the document, of several lists of them."""
        return {line.id: line.label if line.labels is None else line.labels for line in self._lines}

    def to_pandas(self) -> Any:
        """A DataFrame of pandas: id, label, score, probability, and the extra fields, if they were asked for."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A DataFrame of polars: the same columns."""
        import polars

        return polars.DataFrame(self.columns())

    def _repr_html_(self) -> str:
        labels = self.to_dict()
        rows = ((line.id, labels[line.id], line.probability) for line in self._lines)
        return table(f"Labels of {len(self)} documents", ("id", "label", "probability"), rows)


def decode_lines(lines: bytes) -> list[LabeledDocument]:
    """The documents of complete lines of JSON."""
    return _decoder.decode_lines(lines)
