"""Annotations as clients give them: checked, and completed with the draws of their documents."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from core.documents.drawn import Draw
from core.errors import Fault
from storage.records import Action, Annotation, Dataset, Given, labels_in
from storage.repositories.datasets.batch import LabelLists, refuse
from storage.repositories.datasets.labels import label_detail, list_faults

_LABELING: tuple[Action, ...] = ("label", "settle")


class NewAnnotation(NamedTuple):
    """A new entry, as a client gives it."""

    id: str
    document: str
    action: Action
    label: Given | None
    """label, or all of several, as the dataset has them"""
    drawn: Draw | None
    """how the document was drawn, None if the service is to know it"""
    by: str | None
    mode: Literal["blind", "assisted"] | None
    at: datetime
    note: str | None = None
    batch: str | None = None


def checked_entries(
    given: Sequence[NewAnnotation],
    positions: Mapping[str, int],
    label_type: type | None,
    draws: Mapping[int, Draw],
    dataset: Dataset,
    most: int,
) -> list[Annotation]:
    """The entries of a log; raises InvalidDocuments.

    ``label_type`` is the type of the labels so far, ``draws`` how documents were drawn, by position, as far as the
    service knows, ``most`` is how many labels a document may have.
    """
    kind, faults = label_type, list[Fault]()
    for each in given:
        detail = _fault(each, positions, kind, dataset, most)
        if detail is not None:
            faults.append(Fault(each.document, *detail))
        else:
            kind = kind or next((type(label) for label in labels_in(each.label)), None)
    refuse(faults)
    return [_entry(each, positions[each.document], draws) for each in given]


def _fault(
    given: NewAnnotation, positions: Mapping[str, int], label_type: type | None, dataset: Dataset, most: int
) -> tuple[str, str] | None:
    """The field that is not valid and why, None if all are."""
    if given.document not in positions:
        return "document", "there is no such document in the dataset"
    if (given.note is None) == (given.action == "note"):
        return "note", "is the text of the action note, which needs one; an empty text takes the note away"
    if given.action not in _LABELING:
        return (
            None
            if given.label is None
            else ("label", f"is only for the actions label and settle, not for {given.action}")
        )
    if given.label is None:
        return "label", "is missing; the action skip says that a document gets none, undo takes an answer back"
    if given.by in dataset.voters:
        return "by", f"{given.by!r} is a voter of the dataset; a person needs another name"
    labels = labels_in(given.label)
    for _, field, reason in list_faults(LabelLists([labels], [None]), [None], most):
        return field, reason
    label_type = label_type or next((type(label) for label in labels), None)
    detail = next((wrong for label in labels if (wrong := label_detail(label, label_type))), None)
    return None if detail is None else ("label" if dataset.label_kind == "single" else "labels", detail)


def _entry(given: NewAnnotation, position: int, draws: Mapping[int, Draw]) -> Annotation:
    draw = draws.get(position, Draw.UNKNOWN) if given.drawn is None else given.drawn
    return Annotation(
        id=given.id,
        document=given.document,
        position=position,
        action=given.action,
        label=None if isinstance(given.label, tuple) else given.label,
        labels=tuple(sorted(given.label)) if isinstance(given.label, tuple) else None,
        drawn=draw.word if given.action in _LABELING else Draw.UNKNOWN.word,
        by=given.by,
        mode=given.mode,
        at=given.at,
        note=given.note,
        batch=given.batch,
    )
