"""Routes of the keys of colleagues, and their schemas."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.responses import Response

from app.http.requests import AuthorizedRoute, RawRoute, on_json
from app.http.schemas import RecordSchema, Schema, error_responses
from app.services.wiring import Services, ServicesDep
from storage.errors import Conflict, NotFound
from storage.names import NAME
from storage.repositories.api_keys import ApiKey, ApiKeys, KeyFacts, Scope


class InvitationBody(msgspec.Struct, forbid_unknown_fields=True):
    """Who is invited to label."""

    name: Annotated[str, Meta(pattern=f"^{NAME}$")]
    """Name of the person: 1 to 128 letters, digits, '.', '_' or '-'."""
    days: Annotated[float, Meta(gt=0, le=36_500)] = 30
    """Days for which the key is valid."""


class KeyOut(KeyFacts, RecordSchema):
    """A key to label, without its secret."""

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


router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=AuthorizedRoute)
raw_router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=RawRoute)


@on_json(raw_router, "POST", "", InvitationBody, CreatedKey, {"name": "ann", "days": 14}, refused=[409], status=201)
def invite(services: Services, body: InvitationBody) -> CreatedKey:
    """Make a key by which a colleague may label: it has the scope label, and no other.

    Where no key is required there is none to make (409): the address of the page is enough.
    """
    if services.settings.access != "keys":
        raise Conflict("this service requires no key; send your colleague the address of the page")
    expires_at = datetime.now(UTC) + timedelta(days=body.days)
    key, text = ApiKeys(services.store).create(body.name, {Scope.LABEL}, expires_at)
    return CreatedKey(**KeyOut.of(key).model_dump(), key=text)


@router.get("", responses=error_responses(422, 503))
def list_invited(services: ServicesDep) -> KeyList:
    """List the keys that may only label and are valid."""
    now = datetime.now(UTC)
    valid = (each.key for each in ApiKeys(services.store).every() if each.state(now) == "valid")
    listed = [KeyOut.of(key) for key in valid if key.scopes == [Scope.LABEL]]
    return KeyList(keys=listed, required=services.settings.access == "keys")


@router.delete("/{id}", status_code=204, response_class=Response, responses=error_responses(404, 422, 503))
def revoke_invitation(services: ServicesDep, id: str) -> None:
    """Revoke a key that may only label, within seconds for every gateway. Others are revoked by `halfmoon keys`."""
    keys = ApiKeys(services.store)
    if all(each.key.id != id or each.key.scopes != [Scope.LABEL] for each in keys.every()):
        raise NotFound("key to label", id)
    keys.revoke(id)
