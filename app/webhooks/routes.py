"""Routes of webhooks, and their schemas."""

from typing import Annotated, Self

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.responses import Response

from app.errors import InvalidRequest
from app.http.requests import AuthorizedRoute, RawRoute, on_json
from app.http.schemas import RecordSchema, Schema, error_responses
from app.services.webhooks.sender import AddressRefused, is_secret, new_secret
from app.services.wiring import Services, ServicesDep
from storage.errors import LimitExceeded
from storage.repositories.webhooks import EVENTS, Event, Message, Webhook, WebhookFacts


class WebhookBody(msgspec.Struct, forbid_unknown_fields=True):
    """An address to tell of events."""

    url: str
    """Address that takes POST requests: public, or in a network that the operator allows."""
    events: Annotated[list[Event], Meta(min_length=1)] = msgspec.field(default_factory=lambda: list(EVENTS))
    """Events to tell of: job.ended, however it ended; version.published. By default both."""
    secret: str | None = None
    """Secret by which messages are signed: whsec_ and 24 to 64 bytes as base64. Left out: one is made."""


class WebhookOut(WebhookFacts, RecordSchema):
    """A webhook, without its secret."""

    waiting: int
    """Number of messages that were not delivered yet."""
    last_error: str | None
    """Why the oldest of them failed last; null if none did."""

    @classmethod
    def of(cls, webhook: Webhook, waiting: int, oldest: Message | None) -> Self:
        """The record in the form of the contract, given the number of messages that wait, and the one that waits
        longest.
        """
        return cls(
            **webhook.model_dump(exclude={"secret"}),
            waiting=waiting,
            last_error=None if oldest is None else oldest.error,
        )


class CreatedWebhook(WebhookOut):
    """A new webhook with its secret, which is shown once."""

    secret: str


class WebhookList(Schema):
    """All webhooks, oldest first."""

    webhooks: list[WebhookOut]


router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=AuthorizedRoute)
raw_router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=RawRoute)

_MOST = 100
"""Webhooks of an installation: each is told of every event."""


@on_json(
    raw_router,
    "POST",
    "",
    WebhookBody,
    CreatedWebhook,
    {"url": "https://example.com/halfmoon", "events": ["job.ended"]},
    status=201,
)
def create_webhook(services: Services, body: WebhookBody) -> CreatedWebhook:
    """Register an address that is told when a job ends or a version is published.

    Messages are signed as Standard Webhooks say, and tried again for three days until the receiver answers with 2xx.
    """
    secret = new_secret() if body.secret is None else body.secret
    if not is_secret(secret):
        raise InvalidRequest("secret", "must be whsec_ and 24 to 64 bytes as base64; leave it out, and one is made")
    try:
        services.delivery.sender.check(body.url)
    except AddressRefused as error:
        raise InvalidRequest("url", str(error)) from None
    if len(services.delivery.webhooks.every()) >= _MOST:
        raise LimitExceeded("webhooks", _MOST)
    webhook = services.delivery.webhooks.create(body.url, dict.fromkeys(body.events), secret)
    return CreatedWebhook(**WebhookOut.of(webhook, 0, None).model_dump(), secret=secret)


@router.get("", responses=error_responses(422, 503))
def list_webhooks(services: ServicesDep) -> WebhookList:
    """List all webhooks, each with its backlog of messages."""
    webhooks = services.delivery.webhooks
    waiting = webhooks.waiting()
    oldest = {id: webhooks.message(names[0]) for id, names in waiting.items()}
    return WebhookList(
        webhooks=[WebhookOut.of(each, len(waiting.get(each.id, ())), oldest.get(each.id)) for each in webhooks.every()]
    )


@router.delete("/{id}", status_code=204, response_class=Response, responses=error_responses(404, 422, 503))
def delete_webhook(services: ServicesDep, id: str) -> None:
    """Delete a webhook, and the messages that wait for it."""
    services.delivery.webhooks.delete(id)
