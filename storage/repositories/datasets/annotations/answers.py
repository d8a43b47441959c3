"""What the entries of an annotation log say of each document: the label that people agree on, or that it was
skipped."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from core.documents.drawn import Draw
from storage.records import Annotation, Label


class Answer(NamedTuple):
    """What people say of a document now."""

    label: Label | None
    """label, None of a document that was only skipped"""
    draw: Draw
    people: int
    """number of people who gave it a label"""
    agreed: bool
    """whether all of them gave it the same label"""


class Answers:
    """The answers of a log, entry after entry.

    Of each person the last answer counts that was not taken back. Of several people the label counts that most of them
    gave, of equals the newest.
    """

    def __init__(self) -> None:
        self._given: dict[int, dict[str | None, list[tuple[int, Annotation]]]] = {}
        self._count = 0

    def add(self, entries: Iterable[Annotation]) -> None:
        """Add the next entries of the log."""
        for entry in entries:
            self._count += 1
            given = self._given.setdefault(entry.position, {}).setdefault(entry.by, [])
            if entry.action != "undo":
                given.append((self._count, entry))
            elif given:
                given.pop()

    def of(self, position: int) -> Answer | None:
        """What people say of a document; None if nobody does, or all of it was taken back."""
        last = [given[-1] for given in self._given.get(position, {}).values() if given]
        if not last:
            return None
        labeled = [(number, entry) for number, entry in last if entry.action == "label"]
        if not labeled:
            return Answer(None, Draw.UNKNOWN, 0, agreed=True)
        votes = Counter(entry.label for _, entry in labeled)
        _, entry = max(labeled, key=lambda each: (votes[each[1].label], each[0]))
        return Answer(entry.label, Draw.of(entry.drawn), len(labeled), len(votes) == 1)

    def __iter__(self) -> Iterator[tuple[int, Answer]]:
        """Positions of the documents of which people say something, with what they say."""
        return ((position, answer) for position in self._given if (answer := self.of(position)) is not None)
