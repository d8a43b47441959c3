"""The errors of the mathematics, as a tree, and the names that were probably meant where one is not known.

HalfmoonError
├── InvalidDocuments   rows or labels that cannot be trained on or predicted; carries the faults
├── InvalidOption      an option that an algorithm cannot take; names the field
├── ModelTooLarge      a model that would take more room than it may
└── UnknownAlgorithm   no such algorithm; names the known ones

They are domain words: what HTTP status each becomes is the gateway's business.
"""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

MAX_FAULTS = 20
"""How many faults are told at most."""


class Fault(NamedTuple):
    """One thing that is wrong with one document.

    ``document`` is its id, or its position as an integer ("" when the fault is not of one document); ``field`` the
    field in it (``indices``, ``values``, ``label``, ``id``); ``detail`` a sentence for a person.
    """

    document: str | int
    field: str
    detail: str

    @property
    def place(self) -> str:
        """The document in words: people count from 1, and an id is quoted."""
        if isinstance(self.document, int):
            return f"document number {self.document + 1}"
        return f"document {self.document!r}" if self.document else ""

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.place, self.field, self.detail)))


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
    return InvalidDocuments(str(faults[0]), faults[:MAX_FAULTS])


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


_LONGEST_NAME = 64
"""Characters of a name up to which similar names are searched: the search is quadratic in them."""

_MOST_NAMES = 1000
"""Known names among which similar ones are searched: a search in the names of a table may not take seconds."""

_ALIKE = 0.7
"""Least similarity, as difflib has it: 'lable' and 'label' have .8, 'text' and 'ticket' .6."""


_SYNONYMS = {
    "text": ("body", "content", "sentence", "message", "document", "review", "utterance"),
    "label": ("category", "class", "class_name", "sentiment", "tag", "target", "topic"),
    "labels": ("y", "target", "targets", "classes"),
    "vector": ("embedding", "embeddings"),
    "lambda": ("c", "alpha", "regularization"),
    "max_iterations": ("max_iter", "epochs", "n_iter"),
    "tolerance": ("tol", "eps", "epsilon"),
    "seed": ("random_state", "random_seed"),
    "algorithm": ("algo", "classifier", "method"),
    "options": ("params", "parameters", "hyperparameters"),
}
"""What other tools call a thing, in lower case."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'label'?`` if a known name is similar, or has this synonym in other tools, else empty."""
    lower = {each.lower(): each for each in known}
    if name.lower() not in lower:
        for each, synonyms in _SYNONYMS.items():
            if each in lower and name.lower() in synonyms:
                return f"; did you mean {each!r}?"
    similar = (
        get_close_matches(name.lower(), islice(lower, _MOST_NAMES), 1, _ALIKE) if len(name) <= _LONGEST_NAME else []
    )
    return f"; did you mean {lower[similar[0]]!r}?" if similar else ""
