"""Schemas of models, and of the bodies of their calls."""

from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta
from pydantic import AwareDatetime, Field

from app.http.schemas import Schema
from core.documents.kinds import Kind
from workers.contract import Label, Version
from workers.errors import NotFound
from workers.repositories.models import Models

Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class VersionOut(Schema):
    """A version of a model. It never changes."""

    name: str
    version: int
    job: str
    dataset: str
    algorithm: str
    options: dict[str, Any]
    classes: list[Label]
    kind: Kind
    """Kind of the documents that the model predicts: vectors (indices), named features, or text."""
    text: dict[str, int] | None
    """Options of how text became terms; null if the documents are not text."""
    n_features: int
    """Number of features of the training documents; of text, number of terms."""
    facts: dict[str, str | int] = Field(examples=[{"family": "kernel", "kernel": "rbf", "bytes": 1843200, "n_support": 640}])
    """Facts about the model: ``family`` (linear or kernel) and ``bytes`` of its arrays and words; of a linear model ``n_seen_features``; of a
    kernel model ``kernel`` and ``n_support``, the number of training documents that it keeps; of named features ``n_names``; of text ``n_terms``
    and ``n_words``."""
    objective: float | None
    status: str
    created_at: AwareDatetime

    @classmethod
    def of(cls, version: Version) -> Self:
        """The record in the form of the contract."""
        return cls(version=version.number, **version.model_dump(exclude={"number", "files"}))


class ModelOut(Schema):
    """A model with its versions, oldest first, and its aliases."""

    name: str
    versions: list[VersionOut]
    aliases: dict[str, int]

    @classmethod
    def of(cls, models: Models, name: str) -> Self:
        """The model of that name; raises NotFound."""
        return cls(name=name, versions=[VersionOut.of(version) for version in models.versions(name)], aliases=models.aliases(name))


class ModelSummary(Schema):
    """A model in a list."""

    name: str
    newest: int
    """Number of the newest version, to which the name alone refers."""
    aliases: dict[str, int]

    @classmethod
    def of(cls, models: Models, name: str) -> Self | None:
        """The summary of a model, or None if the model was deleted meanwhile."""
        try:
            return cls(name=name, newest=models.resolve(name).number, aliases=models.aliases(name))
        except NotFound:
            return None


class ModelPage(Schema):
    """A page of models, by name."""

    models: list[ModelSummary]
    next_cursor: str | None


class AliasOut(Schema):
    """An alias and the version to which it points."""

    name: str
    alias: str
    version: int


class AliasBody(msgspec.Struct, forbid_unknown_fields=True):
    """The version to which an alias shall point."""

    version: Number
