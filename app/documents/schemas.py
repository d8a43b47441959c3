"""Schemas of documents as answers show them, and the values of their query."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from app.codecs.json_documents.document import DrawWord
from app.http.schemas import Schema
from storage.records import Label


class State(StrEnum):
    """Which documents a page has, by what people did with them."""

    LABELED = "labeled"
    UNLABELED = "unlabeled"
    SKIPPED = "skipped"
    """left out by a person, and without a label"""
    OPEN = "open"
    """neither labeled nor left out"""


class Order(StrEnum):
    """Order of the documents."""

    POSITION = "position"
    LIKELIEST = "likeliest"
    """those first of whose label a model is the surest"""
    LEAST_CERTAIN = "least_certain"
    RANDOM = "random"


class StoredDocument(Schema):
    """A document of a dataset: what was sent, its label now, and what a model predicts of it."""

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
    """Label that people gave it, else that of the dataset; null if it has none."""
    drawn: DrawWord | None
    """How the label was come by; null if it has none."""
    skipped: bool
    """Whether it has no label since a person left it out."""
    by: str | None
    """Names of the people who gave the label, separated by commas; null if it is that of the dataset, or none."""
    people: dict[str, Label]
    """Label by person, also where they disagree; who gives no name is the person ''."""
    notes: dict[str, str]
    """Note by person."""
    flagged: bool
    """Whether somebody marked it for others to look at."""
    predicted: Label | None = None
    """Label by the model; only if a model is named, as the next two."""
    probability: float | None = None
    """Probability of that label; null if the model is not calibrated."""
    score: float | None = None
    """Score of the second of two classes; of more classes, score of the label."""


class DocumentPage(Schema):
    """A page of documents."""

    documents: list[StoredDocument]
    next: str | None = Field(examples=["499"])
    """Value of ``cursor`` for the next page; null on the last page. A page of a search may be shorter than ``limit``,
    or empty, where documents follow that were not searched yet."""
    model: str | None
    """Name of the model that predicted."""
    version: int | None
    """Its version."""
