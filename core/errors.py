"""The errors of the mathematics, as a tree.

HalfmoonError
├── InvalidDocuments   rows or labels that cannot be trained on or predicted; carries the faults
├── InvalidOption      an option that an algorithm cannot take; names the field
├── ModelTooLarge      a model that would take more room than it may
└── UnknownAlgorithm   no such algorithm; names the known ones

They are domain words: what HTTP status each becomes is the gateway's business.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from core.spelling import did_you_mean

MAX_FAULTS = 20
"""How many faults are told at most."""


class Fault(NamedTuple):
    """One thing that is wrong with one document.

    ``document`` is its id or its position as a string ("" when the fault is not of one document); ``field`` the field
    in it (``indices``, ``values``, ``label``, ``id``); ``detail`` a sentence for a person.
    """

    document: str
    field: str
    detail: str


class MessageNames(NamedTuple):
    """How messages call documents and features: functions of a document's position and of a feature's column. A feature
    without a name is its column.
    """

    document: Callable[[int], str] = str
    feature: Callable[[int], str | int] = int


class HalfmoonError(Exception):
    """Anything that this project refuses or fails at by name."""


class InvalidDocuments(HalfmoonError):
    """Documents, labels or their lack make the request unanswerable."""

    def __init__(self, detail: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.faults = tuple(faults)


def invalid_documents(faults: Sequence[Fault]) -> InvalidDocuments:
    """The error for documents with these faults."""
    first = faults[0]
    where = f"document {first.document}" if first.document else "the body"
    return InvalidDocuments(f"{where}: {first.field + ': ' if first.field else ''}{first.detail}", faults[:MAX_FAULTS])


def refuse(faults: Iterable[Fault]) -> None:
    """Raise InvalidDocuments with the first of these faults, if there are some."""
    found = list(islice(faults, MAX_FAULTS))
    if found:
        raise invalid_documents(found)


def refused(detail: str, field: str = "") -> InvalidDocuments:
    """The error for a body that cannot be read as a whole."""
    return invalid_documents([Fault("", field, detail)])


class InvalidOption(HalfmoonError):
    """An option is unknown, of the wrong type, or out of its range."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class ModelTooLarge(HalfmoonError):
    """The model that training is about to end with would be larger than models may be here."""

    def __init__(self, n_support: int, n_bytes: int, limit: int) -> None:
        super().__init__(
            f"the model would keep {n_support} documents and take {n_bytes} bytes, more than the {limit} that a "
            "model may take here; "
            "train on fewer documents, with another kernel width or C, or with an algorithm that keeps fewer "
            "(ramp_svm) or none (linear methods such as tsvm)"
        )


class UnknownAlgorithm(HalfmoonError):
    """The name of an algorithm that is not in the registry."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"unknown algorithm {name!r}{did_you_mean(name, known) or ';'} known are {', '.join(known)}")
