"""Datasets by the names of the contract, and the bodies of their calls."""

from typing import Any, Self

import msgspec
from pydantic import AwareDatetime

from app.http.schemas import Schema
from core.documents.kinds import Kind
from workers.contract import Dataset


class DatasetOut(Schema):
    """A sealed set of documents."""

    id: str
    name: str | None
    n_documents: int
    n_labeled: int
    kind: Kind
    """of its documents: vectors (indices), named features, or text"""
    n_features: int | None
    """null of text: a job says how it becomes terms, and its model how many there are"""
    n_nonzeros: int | None
    """null of text"""
    classes: dict[str, int]
    """each class with the number of documents labeled with it"""
    sha256: str
    """the same documents give the same digest, however they were sent"""
    created_at: AwareDatetime
    warnings: list[str]

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """The record as the contract shows it."""
        fields = dataset.model_dump(include=set(cls.model_fields) - {"classes"})
        return cls(**fields, classes={str(label): count for label, count in dataset.classes})


class DatasetPage(Schema):
    """Datasets, newest first."""

    datasets: list[DatasetOut]
    next_cursor: str | None
    """give it as ``cursor`` for the next page; null on the last"""


class LabelsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Labels to change, by document id; null takes a label away."""

    labels: dict[str, Any]
    """checked one by one, so that a refusal can say of which document"""
