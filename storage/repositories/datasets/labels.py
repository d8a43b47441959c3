"""A batch of documents, some thousands at a time, which codecs read and a dataset takes; and its labels as class
indices: numbered as they come, renumbered in sorted order when all are known.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import Rows
from core.documents.votes import Vote
from storage.errors import LimitExceeded
from storage.records import MAX_TEXT, Label

MAX_NAMES = 1000
"""Names of the extra fields of a dataset at most."""
LEAVE_OUT = "leave them out by ?extra=ignore, or send fewer"


class ExtraFields(NamedTuple):
    """Extra fields of consecutive documents."""

    names: Sequence[str]
    """names of the fields, all different"""
    values: Sequence[Sequence[Any]]
    """values of each document by name, as JSON has them; None where it has none; those of the last names may be left
    out"""


class LabelLists(NamedTuple):
    """Labels of consecutive documents that may have several."""

    applied: Sequence[Sequence[Label] | None]
    """all labels of each document; None where they are not known"""
    excluded: Sequence[Sequence[Label] | None]
    """labels that each document is known not to have"""


class Batch(NamedTuple):
    """Consecutive documents of one kind, not validated.

    DatasetBuilder does so. Indices may be out of order within a row.
    """

    rows: Rows
    labels: Sequence[Label | None]
    """label of each row, None for unlabeled; Python strings or integers, not NumPy's"""
    ids: Sequence[str | None] | None = None
    """id of each row; for None, of one row or of all, the position in the dataset is the id"""
    drawn: NDArray[np.int8] | None = None
    """how the label of each row was come by, shape (n_rows,), values of core.documents.drawn.Draw; None where nothing
    is known of any row"""
    fields: ExtraFields | None = None
    """fields of the rows that are kept beside them and not learned from; None where no row has any"""
    label_lists: LabelLists | None = None
    """labels in place of ``labels``, of rows that may have several; None where each has one at most"""
    votes: Sequence[Mapping[str, Vote] | None] | None = None
    """votes about each row by voter; None where nobody voted"""
    weights: NDArray[np.float64] | None = None
    """weight of the label of each row, shape (n_rows,); None where all are 1"""


UNLABELED = -1
FEWER_CLASSES = "leave rare ones out, or have HALFMOON_MAX_CLASSES raised"
_INTEGERS = range(-(2**63), 2**63)


class Classes:
    """Labels so far, each with a class index; all strings or all integers, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._class_indices: dict[Label | None, int] = {None: UNLABELED}
        self.label_type: type | None = None
        """type of the labels so far, None before the first"""

    def faults(self, labels: Sequence[Any], limit: int) -> list[tuple[int, str]]:
        """Invalid labels: their places in the sequence and the reasons.

        The type of the labels is that of the first ever seen.
        """
        if self._all_valid(labels):
            return []
        found: list[tuple[int, str]] = []
        kind = self.label_type
        for place, label in enumerate(labels):
            if label is None:
                continue
            detail = label_detail(label, kind)
            kind = kind or (type(label) if detail is None else None)
            if detail is not None:
                found.append((place, detail))
                if len(found) == limit:
                    break
        return found

    def faults_of_lists(self, lists: LabelLists, limit: int) -> Iterator[tuple[int, str, str]]:
        """Invalid labels in lists, ``limit`` of a field at most: the places of the documents, the fields and the
        reasons."""
        for field, given in zip(("labels", "not"), lists, strict=True):
            owners = [(place, label) for place, labels in enumerate(given) for label in labels or ()]
            wrong = self.faults([label for _, label in owners], limit)
            yield from ((owners[number][0], field, detail) for number, detail in wrong)

    def encode(self, labels: Sequence[Label | None]) -> NDArray[np.int32]:
        """Class indices of valid labels, -1 for None; raises LimitExceeded for too many classes."""
        for label in dict.fromkeys(labels):
            if label not in self._class_indices:
                if len(self._class_indices) > self._limit:
                    raise LimitExceeded("classes", self._limit, FEWER_CLASSES)
                self.label_type = type(label)
                self._class_indices[label] = len(self._class_indices) - 1
        return np.fromiter(map(self._class_indices.__getitem__, labels), np.int32, len(labels))

    def sorted(self) -> tuple[list[Label], NDArray[np.int32]]:
        """The classes in sorted order, and the final index of each index so far; the last element, -1, stands for
        unlabeled.
        """
        given: list[Any] = list(self._class_indices)[1:]
        classes: list[Any] = sorted(given)
        final = {label: class_index for class_index, label in enumerate(classes)}
        return classes, np.array([*(final[label] for label in given), UNLABELED], np.int32)

    def _all_valid(self, labels: Sequence[Any]) -> bool:
        """Whether all labels are valid, by their types and their distinct values: then none need be checked by
        itself."""
        kinds = set(map(type, labels)) - {type(None)}
        if not kinds:
            return True
        kind = self.label_type or next(iter(kinds))
        return (
            kinds == {kind}
            and kind in (str, int)
            and all(label_detail(label, kind) is None for label in set(labels) if label is not None)
        )


def label_detail(label: Any, kind: type | None) -> str | None:
    """Why a label is invalid, where the labels so far are of this type; None if it is valid."""
    if type(label) not in (str, int):
        return "must be a string or an integer"
    if kind is not None and type(label) is not kind:
        return "labels must be all strings or all integers"
    if isinstance(label, int):
        return None if label in _INTEGERS else "must fit 64 bits"
    return text_detail(label)


def labels_detail(labels: Sequence[Any]) -> str | None:
    """Why one of several labels is invalid; None if all are valid."""
    return next((detail for label in labels if (detail := label_detail(label, None)) is not None), None)


def text_detail(text: str) -> str | None:
    """Why a text is no label and no id, None if it may be one."""
    if not 1 <= len(text) <= MAX_TEXT:
        return f"must have 1 to {MAX_TEXT} characters"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return None


def list_faults(lists: LabelLists, labels: Sequence[Label | None], most: int) -> Iterator[tuple[int, str, str]]:
    """Documents whose labels do not go together: their places, the fields and the reasons.

    ``labels`` are the labels that they have alone, ``most`` is how many a document may have.
    """
    for place, (applied, excluded) in enumerate(zip(*lists, strict=True)):
        if applied is None and excluded is None:
            continue
        if labels[place] is not None:
            field = "not" if applied is None else "labels"
            yield place, field, "stands beside label; give labels alone, with all that apply"
        for field, given in (("labels", applied or ()), ("not", excluded or ())):
            if len(given) > most:
                yield place, field, f"has {len(given)} labels, more than the {most} of HALFMOON_MAX_DOCUMENT_LABELS"
            elif len(set(given)) < len(given):
                yield place, field, f"names {Counter(given).most_common(1)[0][0]!r} twice; name each label once"
        both = {*applied} & {*excluded} if applied and excluded else None
        if both:
            yield place, "not", f"names {both.pop()!r}, which labels has, too; a label applies or does not"
