"""Schemas of datasets, and of the bodies of their calls."""

from typing import Self

import msgspec
from pydantic import AwareDatetime, Field

from app.http.schemas import Page, Schema
from core.documents.kinds import Kind
from storage.records import Dataset, DatasetPart


class DatasetOut(Schema):
    """A set of documents, some of them labeled. It never changes."""

    id: str
    name: str | None
    n_documents: int
    n_labeled: int
    kind: Kind
    """Kind of the documents: vectors (indices or a dense vector), named features, text, or several parts."""
    n_features: int | None
    """Number of features; null for text, whose terms a job finds, and for several parts, which have their own."""
    n_nonzeros: int | None
    """Number of nonzero values; null likewise."""
    parts: list[DatasetPart]
    """Parts of the documents, sorted by name; empty if all documents have but one."""
    classes: dict[str, int]
    """Number of labeled documents of each class."""
    drawn: dict[str, int] = Field(examples=[{"random": 5, "chosen": 15}])
    """Number of labels by how they were come by; those of which nothing is known are left out."""
    fields: list[str]
    """Names of the extra fields, which are kept beside documents and not learned from."""
    sha256: str
    """Digest of the documents; equal documents have equal digests in every format."""
    created_at: AwareDatetime
    warnings: list[str]

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """The record in the form of the contract."""
        fields = dataset.model_dump(include=set(cls.model_fields) - {"classes"})
        return cls(**fields, classes={str(label): count for label, count in dataset.classes})


class DatasetPage(Page):
    """A page of datasets, newest first."""

    datasets: list[DatasetOut]


class LabelsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Labels to change, by document id; null removes a label."""

    labels: msgspec.Raw
    """Labels by document id; they are checked one by one, so that an error names the document."""
    drawn: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """How labels were come by, by document id: random, chosen, found or unknown. New labels of suggested documents have
    it without being told."""
