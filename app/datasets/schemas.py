"""Schemas of datasets, and of the bodies of their calls."""

from typing import Annotated, Self

import msgspec
from msgspec import Meta

from app.codecs.json_documents.document import ShortText
from app.http.schemas import Page, RecordSchema, Schema
from storage.names import TITLE
from storage.records import Dataset, DatasetFacts, Label, LabelKind
from storage.repositories.datasets.repository import ClassProfile, DatasetProfile

Share = Annotated[float, Meta(gt=0, le=1e6)]
Named = Annotated[str, Meta(max_length=256)]
MOST_NAMES = 1_000
"""names of clusters of a dataset"""


class DatasetOut(DatasetFacts, RecordSchema):
    """A set of documents, some of them labeled: these never change. Its name and guidelines may."""

    classes: dict[str, int]
    """Number of labeled documents of each class; a class of votes alone, or that is only excluded, has 0."""
    archived: bool
    """Whether people put it away; nothing else follows from that."""
    guidelines: str
    """How to label its documents, in the words of who knows."""
    shares: dict[str, float]
    """Weight of each person's share of the documents to label; empty: each document is for whoever comes."""
    overlap: float
    """Share of the documents that everybody answers."""
    clusters: dict[str, str]
    """Names of clusters of first looks, by id of the job and number of the cluster with / between them."""

    @classmethod
    def of(cls, dataset: Dataset, profile: DatasetProfile) -> Self:
        """The records in the form of the contract."""
        fields = dataset.model_dump(include=set(cls.model_fields) - {"classes"})
        fields |= profile.model_dump(exclude={"name", "classes"}) | {"name": profile.name or dataset.name}
        return cls(**fields, classes={str(label): count for label, count in dataset.classes})


class DatasetPage(Page):
    """A page of datasets, newest first."""

    datasets: list[DatasetOut]


class DatasetChanges(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Changes of a dataset; fields that are left out stay."""

    name: Annotated[str, Meta(pattern=f"^{TITLE}$")] | msgspec.UnsetType = msgspec.UNSET
    """Name: 1 to 128 characters in a line; need not be unique."""
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    guidelines: Annotated[str, Meta(max_length=20_000)] | msgspec.UnsetType = msgspec.UNSET
    shares: Annotated[dict[ShortText, Share], Meta(max_length=100)] | msgspec.UnsetType = msgspec.UNSET
    """Weight of each person's share, by name; {}: each document is for whoever comes."""
    overlap: Annotated[float, Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    """Share of the documents that everybody answers, each without seeing what others said: a random sample."""
    clusters: Annotated[dict[ShortText, Named], Meta(max_length=MOST_NAMES)] | msgspec.UnsetType = msgspec.UNSET
    """Names of clusters, by id of the job and number of the cluster: `"job-06h0…/3"`. Others stay; an empty name is
    taken away."""


class ClassBody(msgspec.Struct, forbid_unknown_fields=True):
    """A class as people see it."""

    name: Label
    """Name of the class, which is the label of its documents."""
    key: Annotated[str, Meta(pattern=r"^[A-Za-z0-9]$")] | None = None
    """Key of the keyboard that gives it, each once."""
    description: Annotated[str, Meta(max_length=500)] = ""
    """A sentence that says which documents belong to it."""
    color: Annotated[str, Meta(pattern="^#[0-9a-fA-F]{6}$")] | None = None
    """Colour as #rrggbb."""


class ClassesBody(msgspec.Struct, forbid_unknown_fields=True):
    """The classes of a dataset, in the order in which people see them."""

    classes: Annotated[list[ClassBody], Meta(max_length=1_000)]


class ClassOut(ClassProfile, RecordSchema):
    """A class as people see it."""


class ClassList(Schema):
    """The classes of a dataset in the order in which people see them: those that were set, then those that labels have
    beside them.
    """

    classes: list[ClassOut]


class LabelsBody(msgspec.Struct, forbid_unknown_fields=True, rename={"excluded": "not"}):
    """Labels to change, by document id; null removes a label."""

    labels: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """Labels by document id, of several a list; they are checked one by one, so that an error names the document."""
    excluded: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """Lists of labels that do not apply, by document id."""
    label_kind: LabelKind | None = None
    """Kind of the labels of the new dataset: several turns each label into a list of one, single turns it back where no
    document has two. By default it stays."""
    drawn: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """How labels were come by, by document id: random, chosen, found or unknown. New labels of suggested documents have
    it without being told."""
