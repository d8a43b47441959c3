"""Models by the names of the contract, and the bodies of their calls."""

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
    """A published model; it never changes."""

    name: str
    version: int
    job: str
    dataset: str
    algorithm: str
    options: dict[str, Any]
    classes: list[Label]
    kind: Kind
    """of the documents that it takes: vectors (indices), named features, or text"""
    text: dict[str, int] | None
    """how text became terms; null where the documents are none"""
    n_features: int
    """of the training documents; of text, its terms"""
    facts: dict[str, str | int] = Field(examples=[{"family": "kernel", "kernel": "rbf", "bytes": 1843200, "n_support": 640}])
    """of its make: ``family`` (linear or kernel), ``bytes`` of its arrays and words, and by family ``n_seen_features`` or ``kernel`` and
    ``n_support``, the training documents that it keeps; of named features also ``n_names``, of text ``n_terms`` and ``n_words``"""
    objective: float | None
    status: str
    created_at: AwareDatetime

    @classmethod
    def of(cls, version: Version) -> Self:
        """The record as the contract shows it."""
        return cls(version=version.number, **version.model_dump(exclude={"number", "files"}))


class ModelOut(Schema):
    """A model: its versions, oldest first, and its aliases."""

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
    """number of the version that the name alone stands for"""
    aliases: dict[str, int]

    @classmethod
    def of(cls, models: Models, name: str) -> Self | None:
        """The model, or None if it was deleted meanwhile."""
        try:
            return cls(name=name, newest=models.resolve(name).number, aliases=models.aliases(name))
        except NotFound:
            return None


class ModelPage(Schema):
    """Models, by name."""

    models: list[ModelSummary]
    next_cursor: str | None


class AliasOut(Schema):
    """What an alias stands for now."""

    name: str
    alias: str
    version: int


class AliasBody(msgspec.Struct, forbid_unknown_fields=True):
    """The version that an alias shall stand for."""

    version: Number
