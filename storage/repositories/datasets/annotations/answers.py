"""Annotations as clients give them, checked and completed with the draws of their documents; and the answers that
follow from the entries of an annotation log: the label that people agree on, marks and notes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import AwareDatetime, ConfigDict

from core.documents.drawn import Draw
from core.documents.label_sets import label_order
from core.errors import Fault, refuse
from storage.records import Dataset, Given, Label, Record, labels_in
from storage.repositories.datasets.labels import LabelLists, label_detail, list_faults

Action = Literal["label", "settle", "skip", "undo", "flag", "note"]
"""What a person did with a document: gave it a label, left it out, took back what was done last, marked it for others
or took the mark away, wrote a note."""


class AnnotationFacts(Record):
    """Facts about an answer of a person: the fields that its entry in the log and its answer have in common.

    Their descriptions are those of the contract.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    id: str
    document: str
    """Id of the document."""
    action: Action
    label: Label | None = None
    labels: tuple[Label, ...] | None = None
    """Labels in its place, in a dataset of several."""
    by: str | None = None
    mode: Literal["blind", "assisted"] | None = None
    note: str | None = None
    """Text of the action note."""
    batch: str | None = None
    """Name of what was done at once."""
    undo_of: str | None = None
    """Id of the entry that an undo takes back; null: the last of the same person."""
    at: AwareDatetime

    @property
    def given(self) -> Given | None:
        """The label, or all of several; None of other actions."""
        return self.label if self.labels is None else self.labels


class Annotation(AnnotationFacts):
    """An answer of a person about a document; an entry of the log of a dataset.

    Its id is the client's: the same again changes nothing.
    """

    position: int
    """position of the document in the dataset"""
    drawn: str = "unknown"
    """how the label was come by, as a word of core.documents.drawn.Draw"""


class Annotations(Record):
    """Entries that were appended together: ``datasets/{id}/annotations/{first}.json``, by the number of the first of
    them.

    The number of the next record is that of this one plus its entries, so that the records are a chain: of many writers
    one creates the next.
    """

    entries: list[Annotation]


class Answer(NamedTuple):
    """The present answer about a document."""

    label: Given | None
    """label, or all of several; None of a document to which nobody gave one"""
    draw: Draw
    skips: frozenset[str]
    """people who left it out"""
    votes: Mapping[str, Given]
    """label, or all of several, by person; who gives no name is the person ''"""
    notes: Mapping[str, str]
    """note by person"""
    flagged: bool
    """whether somebody marked it for others to look at"""
    settled_by: str | None = None
    """person who settled it last, so that this label counts whatever others answer; None where nobody did"""

    @property
    def skipped(self) -> bool:
        """Whether people left it out, and nobody gave it a label."""
        return self.label is None and bool(self.skips)

    @property
    def answered_by(self) -> frozenset[str]:
        """People who gave it a label or left it out; a note or a mark answers nothing."""
        return self.skips.union(self.votes)

    @property
    def agreed(self) -> bool:
        """Whether all people who gave it a label gave the same."""
        return len({*self.votes.values()}) < 2

    @property
    def disputed(self) -> bool:
        """Whether people differ, and nobody has settled it."""
        return not self.agreed and self.settled_by is None


Entries = list[tuple[int, Annotation]]
"""entries with their numbers"""


_ANSWERS: tuple[Action, ...] = ("label", "settle", "skip")
"""actions of which the last one of a person counts"""


class AggregatedAnswers:
    """The answers of a log, entry after entry.

    Of each person the last answer counts that was not taken back. Of several people the label counts that the last one
    gave who settled it; else that most of them gave, of equals the newest. Of several labels each counts that more than
    half of them gave.
    """

    def __init__(self) -> None:
        self._given: dict[int, dict[str, Entries]] = {}
        self._now: dict[int, Answer] = {}
        self._count = 0
        self.changed = 0
        """number of the last entry that changed a person's label of a document: later ones teach nothing"""

    def now(self) -> dict[int, Answer]:
        """The people's present answers by the position of the document."""
        return dict(self._now)

    def add(self, entries: Iterable[Annotation | None]) -> None:
        """Add the next entries of the log, None for one that cannot be read."""
        for position in {place for entry in entries if (place := self._note(entry)) is not None}:
            answer = _answer([given for given in self._given[position].values() if given])
            if answer is None:
                self._now.pop(position, None)
            else:
                self._now[position] = answer

    def _note(self, entry: Annotation | None) -> int | None:
        """Note an entry; the position of its document."""
        self._count += 1
        if entry is None:
            return None
        given = self._given.setdefault(entry.position, {}).setdefault(entry.by or "", [])
        before = _taught(given)
        if entry.undo_of is not None:
            given[:] = [each for each in given if each[1].id != entry.undo_of]
        elif entry.action != "undo":
            given.append((self._count, entry))
        elif given:
            given.pop()
        if _taught(given) != before:
            self.changed = self._count
        return entry.position


def _answer(given: list[Entries]) -> Answer | None:
    """The answer from the entries of each person; None if all were taken back."""
    if not given:
        return None
    last = [found for entries in given if (found := _last(entries, *_ANSWERS))]
    labeled = [(number, entry) for number, entry in last if entry.given is not None]
    votes = {entry.by or "": entry.given for _, entry in labeled if entry.given is not None}
    skips = frozenset(entry.by or "" for _, entry in last if entry.given is None)
    noted = [found[1] for entries in given if (found := _last(entries, "note"))]
    notes = {entry.by or "": entry.note for entry in noted if entry.note}
    flagged = any(sum(entry.action == "flag" for _, entry in entries) % 2 for entries in given)
    if not labeled:
        return Answer(None, Draw.UNKNOWN, skips, votes, notes, flagged)
    settled = max((each for each in labeled if each[1].action == "settle"), key=lambda each: each[0], default=None)
    if settled is not None:
        entry = settled[1]
        return Answer(entry.given, Draw.of(entry.drawn), skips, votes, notes, flagged, entry.by or "")
    counts = Counter(entry.given for _, entry in labeled)
    _, entry = max(labeled, key=lambda each: (counts[each[1].given], each[0]))
    label = entry.given if isinstance(entry.given, str | int) else majority([*votes.values()], entry.given)
    return Answer(label, Draw.of(entry.drawn), skips, votes, notes, flagged)


def majority(given: Sequence[Given], newest: Given | None) -> tuple[Label, ...]:
    """The labels that more than half of the people gave; what half of them gave is decided by ``newest``."""
    counts = Counter(label for each in given for label in labels_in(each))
    decisive = labels_in(newest)
    found = [
        label
        for label, count in counts.items()
        if 2 * count > len(given) or (2 * count == len(given) and label in decisive)
    ]
    return tuple(sorted(found, key=label_order))


def _taught(given: Entries) -> tuple[Given | None, str, Action] | None:
    """What a training learns of one person's entries about a document: a label, how it was come by, and whether it
    settles the document."""
    last = _last(given, *_ANSWERS)
    return None if last is None or last[1].given is None else (last[1].given, last[1].drawn, last[1].action)


def _last(entries: Entries, *actions: Action) -> tuple[int, Annotation] | None:
    return next((each for each in reversed(entries) if each[1].action in actions), None)


_LABELING: tuple[Action, ...] = ("label", "settle")


class NewAnnotation(AnnotationFacts):
    """A new entry, as a client gives it."""

    draw: Draw | None = None
    """how the document was drawn, None if the service is to know it"""


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
            kind = kind or next((type(label) for label in labels_in(each.given)), None)
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
            if given.given is None
            else ("label", f"is only for the actions label and settle, not for {given.action}")
        )
    if given.given is None:
        return "label", "is missing; the action skip says that a document gets none, undo takes an answer back"
    if given.by in dataset.voters:
        return "by", f"{given.by!r} is a voter of the dataset; a person needs another name"
    labels = labels_in(given.given)
    for _, field, reason in list_faults(LabelLists([labels], [None]), [None], most):
        return field, reason
    label_type = label_type or next((type(label) for label in labels), None)
    detail = next((wrong for label in labels if (wrong := label_detail(label, label_type))), None)
    return None if detail is None else ("label" if dataset.label_kind == "single" else "labels", detail)


def _entry(given: NewAnnotation, position: int, draws: Mapping[int, Draw]) -> Annotation:
    draw = draws.get(position, Draw.UNKNOWN) if given.draw is None else given.draw
    labels = None if given.labels is None else tuple(sorted(given.labels))
    word = draw.word if given.action in _LABELING else Draw.UNKNOWN.word
    return Annotation(**given.model_dump(exclude={"draw", "labels"}), labels=labels, position=position, drawn=word)
