"""Schemas of models, and of the bodies of their calls."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from app.http.schemas import Page, RecordSchema, Schema, left_out
from core.numerics.binomial import clopper_pearson
from storage.errors import NotFound, StoreDamaged
from storage.records import HeldOut, Version, VersionFacts
from storage.repositories.models import Models
from storage.store.keys import Damage


def records_of_models(name: str) -> str:
    """Pattern of the keys of versions and aliases of models with names of a pattern."""
    return rf"models/{name}/(versions|aliases)/[^/]+\.json"


Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class EncoderOut(Schema):
    """A pre-trained encoder of this installation."""

    name: str
    default: bool
    """Whether jobs that name none take it."""
    digest: str
    """SHA-256 of its files, which a model remembers."""
    width: int
    """Numbers of a vector."""
    texts_per_second: float
    """Sentences that one thread of this gateway reads in a second."""


class EncoderList(Schema):
    """The encoders."""

    encoders: list[EncoderOut]


class HeldOutOut(HeldOut, RecordSchema):
    """Results on labels that cross-validation left out.

    Documents that a model chose are not counted if there are enough others.
    """

    low: float
    """Lower end of the interval of 95 % (Clopper and Pearson) of the share that is right."""
    high: float
    """Upper end."""

    @classmethod
    def of(cls, record: HeldOut) -> Self:
        """The record in the form of the contract."""
        return cls(**record.model_dump(), **clopper_pearson(record.right, record.labels)._asdict())


class VersionOut(VersionFacts, RecordSchema):
    """A version of a model. It never changes."""

    version: int
    status: str
    takes_over: bool
    """Whether the name of the model stands for this version, unless a newer one takes over."""
    held_out: HeldOutOut | None
    """Predictions of labels that cross-validation left out; null without it."""

    @classmethod
    def of(cls, version: Version) -> Self:
        """The record in the form of the contract."""
        fields = version.model_dump(exclude={"number", "files", "held_out"})
        held_out = version.held_out and HeldOutOut.of(version.held_out)
        return cls(version=version.number, takes_over=version.takes_over, held_out=held_out, **fields)


class ModelOut(Schema):
    """A model with its versions, oldest first, and its aliases."""

    name: str
    served: int
    """Number of the version to which the name alone refers: the newest that takes over."""
    versions: list[VersionOut]
    aliases: dict[str, int]
    warnings: list[str]
    """What the lists leave out, because it is damaged."""

    @classmethod
    def of(cls, models: Models, name: str, damage: Damage) -> Self:
        """The model of that name; raises NotFound."""
        with ThreadPoolExecutor(1, "aliases") as threads:
            # beside the versions, of which there may be thousands
            aliases = threads.submit(models.aliases, name)
            versions = models.versions(name)
        # as Models.resolve does, which would list thousands of versions again
        served = next((version for version in reversed(versions) if version.takes_over), None) or models.resolve(name)
        return cls(
            name=name,
            served=served.number,
            versions=[VersionOut.of(version) for version in versions],
            aliases=aliases.result(),
            warnings=left_out(damage, records_of_models(re.escape(name))),
        )


class ModelSummary(Schema):
    """A model in a list."""

    name: str
    newest: int
    """Number of the newest version."""
    served: int
    """Number of the version to which the name alone refers: the newest that takes over."""
    aliases: dict[str, int]

    @classmethod
    def of(cls, models: Models, name: str) -> Self | None:
        """The summary of a model, or None if the model was deleted meanwhile, or has no version that can be read."""
        try:
            return cls(
                name=name, newest=models.newest(name), served=models.resolve(name).number, aliases=models.aliases(name)
            )
        except (NotFound, StoreDamaged):
            return None


class ModelPage(Page):
    """A page of models, by name."""

    models: list[ModelSummary]


class AliasOut(Schema):
    """An alias and the version to which it points."""

    name: str
    alias: str
    version: int


class AliasBody(msgspec.Struct, forbid_unknown_fields=True):
    """The version to which an alias shall point."""

    version: Number
