"""Schemas of keys, and of the bodies of their calls."""

from typing import Annotated, Self

import msgspec
from msgspec import Meta
from pydantic import AwareDatetime

from app.http.schemas import Schema
from storage.repositories.api_keys import ApiKey, Scope


class InvitationBody(msgspec.Struct, forbid_unknown_fields=True):
    """Who is invited to label."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    """Name of the person: 1 to 128 letters, digits, '.', '_' or '-'."""
    days: Annotated[float, Meta(gt=0, le=36_500)] = 30
    """Days for which the key is valid."""


class KeyOut(Schema):
    """A key to label, without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: AwareDatetime
    expires_at: AwareDatetime | None

    @classmethod
    def of(cls, key: ApiKey) -> Self:
        """The record in the form of the contract."""
        return cls(**key.model_dump(exclude={"sha256"}))


class CreatedKey(KeyOut):
    """A new key with its text, which is shown once."""

    key: str


class KeyList(Schema):
    """The keys to label that are valid, oldest first."""

    keys: list[KeyOut]
    required: bool
    """Whether the service requires keys: else there is none to make."""
