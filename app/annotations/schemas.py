"""Schemas of annotations, and of the bodies of their calls."""

from datetime import datetime
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta
from pydantic import Field

from app.codecs.json_documents.document import DrawWord, Integer, ShortText
from app.http.schemas import RecordSchema, Schema
from storage.records import Label
from storage.repositories.datasets.annotations.answers import Action, Annotation, AnnotationFacts

MAX_ANNOTATIONS = 10_000
"""Most annotations of one request."""
Mode = Literal["blind", "assisted"]


class AnnotationBody(msgspec.Struct, forbid_unknown_fields=True):
    """A person's answer to a document."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    """Id that the client makes up: the same again changes nothing, so that a request may be repeated."""
    document: ShortText
    """Id of the document."""
    action: Action = "label"
    """Action. label: gives the label. settle: gives the label that counts, whatever others answer. skip: gives none,
    and the document is not suggested again. undo: takes back what the same person did with the document last. flag:
    marks the document for others to look at; the next one of the same person takes the mark away. note: writes a note;
    the last one of a person counts."""
    label: ShortText | Integer | None = None
    labels: list[ShortText | Integer] | None = None
    """All labels that apply, in a dataset of several; empty: none does. Elsewhere a list of one means label."""
    drawn: DrawWord | None = None
    """How the document was drawn. Left out: as the service knows it of documents that it suggested, found by a search
    or drew for an audit."""
    by: ShortText | None = None
    """Name of the person; the answers of several people about a document count one each."""
    mode: Mode | None = None
    """Whether the person saw what a model thinks before the answer (assisted) or not (blind)."""
    note: Annotated[str, Meta(max_length=2000)] | None = None
    """Text of the action note; empty: the note goes."""
    batch: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    """Name that the client makes up for what was done at once, so that it can be taken back together."""
    at: datetime | None = None
    """When; by default now."""


class AnnotationsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Annotations to append to the log, in this order; or a batch of them to take back."""

    annotations: Annotated[list[AnnotationBody], Meta(min_length=1, max_length=MAX_ANNOTATIONS)] | None = None
    undo_of: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    """Batch whose entries are all taken back, whatever was done since; in place of annotations."""


class Appended(Schema):
    """Receipt for annotations: they are durable."""

    sequence: int
    """Number of entries in the log now. A job learns from so many with `"annotations"`."""
    accepted: int
    """Number of annotations that were new: those whose ids the log has change nothing."""


class AnnotationOut(AnnotationFacts, RecordSchema):
    """An entry of the log."""

    sequence: int
    """Number of the entry, from 1."""
    drawn: DrawWord
    """How the label was come by."""

    @classmethod
    def of(cls, sequence: int, entry: Annotation) -> Self:
        """The entry in the form of the contract."""
        return cls(sequence=sequence, **entry.model_dump(exclude={"position"}))


class AnnotationPage(Schema):
    """A part of the log, oldest first."""

    annotations: list[AnnotationOut]
    next: int | None
    """Value of ``after`` for the next part; null if this is the end."""


class PairAgreement(Schema):
    """How far two people agree on the documents that both labeled."""

    people: list[str]
    """Their names; who gives no name is the person ''."""
    compared: int
    """Number of documents that both labeled."""
    agreed: int
    """Number of these to which both gave the same label."""
    cohen: float | None
    """Cohen's kappa; null where both gave all of them one and the same label."""


class AnnotationSummary(Schema):
    """State of the log, with the labels of the dataset."""

    sequence: int
    """Number of entries in the log."""
    changed: int
    """Number of the last entry that changed a label: later ones, as notes and marks, teach a model nothing."""
    classes: dict[str, int] = Field(examples=[{"ham": 25, "spam": 15}])
    """Number of documents of each class, by the dataset and by people; classes of votes alone have 0."""
    labels: list[Label] = Field(examples=[["ham", "spam"]])
    """Labels of these classes, in the same order: strings, or integers if annotations must give integers."""
    documents: int
    """Number of documents of the dataset."""
    labeled: int
    """Number of documents whose label is known, or all labels of several."""
    skipped: int
    """Number of documents that people left out, and that have no label."""
    drawn: dict[str, int] = Field(examples=[{"chosen": 30, "random": 10}])
    """Number of labels by how they were come by."""
    people: dict[str, int]
    """Number of answers by person; those without a name are of the person ''."""
    compared: int
    """Number of documents that several people labeled."""
    agreed: int
    """Number of these on which all of them agree."""
    disputed: int
    """Number of these on which they differ, and that nobody has settled. A job takes these answers for votes."""
    flagged: int
    """Number of documents that somebody marked for others to look at."""
    overlap: int
    """Number of documents that everybody is to answer."""
    overlap_answered: dict[str, int]
    """Number of these that each person has answered or left out."""
    krippendorff: float | None
    """Krippendorff's alpha of all people, for nominal labels: 1 where they agree, 0 where they agree as by chance; null
    where nothing can be compared."""
    pairs: list[PairAgreement]
    """How far each two people agree, those first that share the most documents; at most 50."""
