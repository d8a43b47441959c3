"""Schemas of documents as answers show them, and the values of their query."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from app.codecs.base import SEPARATOR
from app.codecs.json_documents.document import DrawWord
from app.http.answers import EXACT
from app.http.schemas import Position, Schema, Separator
from storage.records import Label

MAX_PAGE = 500


State = Literal["labeled", "unlabeled", "skipped", "open"]
"""Filter of the documents of a page by people's answers."""
Order = Literal["position", "likeliest", "least_certain", "random"]
"""Order of the documents."""


@dataclass(frozen=True)
class DocumentQuery:
    """A query for documents of a dataset, as the parameters of a request have it."""

    limit: Annotated[
        int,
        Query(
            ge=1,
            le=MAX_PAGE,
            description="Most documents of a page; in other forms, of a part that is read at a time.",
        ),
    ] = 50
    cursor: Position = None
    ids: Annotated[
        str | None,
        Query(
            max_length=60_000,
            description='Ids of documents, separated by commas, or as a list of JSON: `["a","b"]`; in this order.',
        ),
    ] = None
    contains: Annotated[
        str | None,
        Query(min_length=1, max_length=256, description="Text that a document contains, or a name of its features."),
    ] = None
    label: Annotated[str | None, Query(max_length=256, description="Label that the documents have.")] = None
    predicted: Annotated[
        str | None, Query(max_length=256, description="Label that the model gives, of several one of them.")
    ] = None
    state: Annotated[
        State | None,
        Query(
            description="State: open documents have no label and were not left out, skipped ones have none since they "
            "were."
        ),
    ] = None
    at_least: Annotated[
        float,
        Query(
            ge=0, le=1, description="Least probability of the label that the model predicts, of several the likeliest."
        ),
    ] = 0.0
    at_most: Annotated[float, Query(ge=0, le=1, description="Most probability of it.")] = 1.0
    order: Annotated[
        Order, Query(description="Order. likeliest: those first of whose label the model is the surest.")
    ] = "position"
    seed: Annotated[int, Query(ge=0, le=2**31 - 1, description="Seed of the random order.")] = 0
    model: Annotated[
        str | None,
        Query(max_length=300, description="Model whose predictions are shown: name, name@alias or name/number."),
    ] = None
    mistaken: Annotated[
        bool,
        Query(description="Only documents with a label, to which the model gives another one, or others."),
    ] = False
    by: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=256,
            description="Name of a person: only documents to which the person gave a label. With `claim` those that "
            "others have claimed are left out instead.",
        ),
    ] = None
    claim: Annotated[
        int | None,
        Query(
            ge=0,
            le=86_400,
            description="Seconds for which the documents of the page are claimed for the person; 0: those that others "
            "have claimed are left out, and none is claimed.",
        ),
    ] = None
    share: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=256,
            description="Name of a person: documents in the shares of others are left out. Those that everybody "
            "answers are shown without what others said until this person has answered, and come first in random "
            "order.",
        ),
    ] = None
    disagreement: Annotated[
        bool, Query(description="Only documents to which people gave different labels, and that nobody has settled.")
    ] = False
    flagged: Annotated[bool, Query(description="Only documents that somebody marked for others to look at.")] = False
    exact: Annotated[bool, Query(description=EXACT)] = False
    separator: Separator = SEPARATOR

    @property
    def needs_scores(self) -> bool:
        """Whether it takes predictions of all documents to answer."""
        return (
            self.order in ("likeliest", "least_certain") or self.mistaken or self.predicted is not None or self.bounded
        )

    @property
    def bounded(self) -> bool:
        """Whether it bounds the probability that a model gives to its label."""
        return self.at_least > 0 or self.at_most < 1


class StoredDocument(Schema):
    """A document of a dataset as it was sent, with its label now and a model's prediction."""

    id: str
    text: str | None = None
    """Text; only of documents that have one."""
    features: dict[str, float] | None = None
    """Values by name; only of documents with named features."""
    indices: list[int] | None = None
    """Features, ascending; only of vectors."""
    values: list[float] | None = None
    """As many as indices."""
    vector: list[float] | None = None
    """Dense vector; only of documents that have it beside other parts. One alone is stored as indices and values."""
    vectors: dict[str, list[float]] | None = None
    """Dense vectors by name; likewise."""
    fields: dict[str, Any] | None = None
    """Extra fields by name, kept beside the document and not learned from; only of datasets that have some."""
    label: Label | None
    """Label that people gave it, else that of the dataset; null if it has none, and of several labels."""
    labels: list[Label] | None = None
    """All its labels in place of one; only of datasets of several, null if they are not known."""
    excluded: list[Label] | None = Field(default=None, alias="not")
    """Labels that it is known not to have; only of datasets of several."""
    votes: dict[str, Label | dict[str, float]] | None = None
    """Votes by voter, a class or probabilities by class; only of datasets with votes."""
    weight: float | None = None
    """Weight of its label; only of datasets with weights."""
    drawn: DrawWord | None
    """How the label was come by; null if it has none."""
    skipped: bool
    """Whether it has no label since a person left it out."""
    by: str | None
    """Names of the people who gave the label, separated by commas; null if it is that of the dataset, or none."""
    people: dict[str, Label | list[Label]]
    """Label by person, of several all of them, also where they disagree; who gives no name is the person ''."""
    notes: dict[str, str]
    """Note by person."""
    flagged: bool
    """Whether somebody marked it for others to look at."""
    predicted: Label | None = None
    """Label by the model, of several labels the likeliest; only if a model is named, as the next two."""
    probability: float | None = None
    """Probability of that label; null if the model is not calibrated."""
    score: float | None = None
    """Score of the second of two classes; of more classes, score of the label."""
    predicted_labels: list[Label] | None = None
    """All labels that the model gives, the likeliest first; only of a model of several."""


class DocumentPage(Schema):
    """A page of documents."""

    documents: list[StoredDocument]
    next: str | None = Field(examples=["499"])
    """Value of ``cursor`` for the next page; null on the last page. A page of a search may be shorter than ``limit``,
    or empty, where documents follow that were not searched yet."""
    total: int | None
    """Number of documents on all pages; null after the first page, and of a search that has not read all documents."""
    model: str | None
    """Name of the model that predicted."""
    version: int | None
    """Its version."""
