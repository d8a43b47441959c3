"""The labels of a body that are to be changed, decoded a slice at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.codecs.base import Reserve
from app.codecs.faults import invalid_documents
from app.codecs.json.slices import decoded_slices
from app.codecs.json.struct import is_given
from app.codecs.json.text import InvalidJson
from app.datasets.schemas import LabelsBody
from app.errors import InvalidRequest
from core.errors import MAX_FAULTS, Fault
from storage.records import MAX_TEXT, Label
from storage.repositories.datasets.files.draws import draw_detail
from storage.repositories.datasets.labels import label_detail

_ENTRY_BYTES = 160
"""Bytes of memory of an entry of a large dict, beside the characters of its key."""
_KNOWN = 10_000
_EXPECTED = "must be an object of values by document id"
_LONGEST = 16 * MAX_TEXT
"""Bytes of a valid entry at most: id and label, each character as an escape of six bytes."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode
Detail = Callable[[Any], str | None]
"""Says why a value is not valid, None if it is."""


@dataclass(frozen=True)
class LabelChanges:
    """Changes of labels by document id."""

    labels: dict[str, Label | None] = field(default_factory=dict)
    drawn: dict[str, str] = field(default_factory=dict)
    """How labels were come by, in words."""

    def read(self, body: LabelsBody, reserve: Reserve) -> Iterator[None]:
        """Add the changes of a body, a slice a step. Raises as ``_entries``."""
        if not is_given(body.labels):
            raise InvalidRequest("labels", _EXPECTED)
        for labels in _entries(body.labels, "labels", "label", _label_detail, reserve):
            self.labels.update(labels)
            yield
        for drawn in _entries(body.drawn, "drawn", "drawn", draw_detail, reserve):
            self.drawn.update(drawn)
            yield

    def clear(self) -> None:
        """Drop the changes one by one: freeing a dict of a million entries would hold the interpreter."""
        for entries in (self.labels, self.drawn):
            while entries:
                entries.popitem()


def _label_detail(label: Any) -> str | None:
    return None if label is None else label_detail(label, None)


def _entries(
    raw: msgspec.Raw, name: str, fault_field: str, detail: Detail, reserve: Reserve
) -> Iterator[dict[str, Any]]:
    """The entries of a raw field by document id, a slice at a time; none if the field is absent or null.

    Raises InvalidRequest if the field is no object, InvalidDocuments naming the documents whose values are not valid,
    LimitExceeded, and what ``reserve`` raises.
    """
    if not is_given(raw):
        return
    text = memoryview(raw)
    if text[0] != ord("{"):
        raise InvalidRequest(name, _EXPECTED)
    known: dict[Any, Any] = {}
    try:
        for entries in decoded_slices(_decode, text, _LONGEST, f"an entry of {name}"):
            _refuse(entries, fault_field, detail)
            reserve(sum(map(len, entries)) + _ENTRY_BYTES * len(entries))
            # equal values share one object: labels are few
            yield {
                id: known.setdefault(value, value) if len(known) < _KNOWN else value for id, value in entries.items()
            }
    except InvalidJson as error:
        raise InvalidRequest(name, error.detail) from None


def _refuse(entries: dict[str, Any], field: str, detail: Detail) -> None:
    faults: list[Fault] = []
    for id, value in entries.items():
        wrong = detail(value)
        if wrong is not None:
            faults.append(Fault(id, field, wrong))
            if len(faults) == MAX_FAULTS:
                break
    if faults:
        raise invalid_documents(faults)
