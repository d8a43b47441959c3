"""Schemas of webhooks, and of the bodies of their calls."""

from typing import Annotated, Self

import msgspec
from msgspec import Meta
from pydantic import AwareDatetime

from app.http.schemas import Schema
from storage.repositories.webhooks import EVENTS, Event, Message, Webhook


class WebhookBody(msgspec.Struct, forbid_unknown_fields=True):
    """An address to tell of events."""

    url: str
    """Address that takes POST requests: public, or in a network that the operator allows."""
    events: Annotated[list[Event], Meta(min_length=1)] = msgspec.field(default_factory=lambda: list(EVENTS))
    """Events to tell of: job.ended, however it ended; version.published. By default both."""
    secret: str | None = None
    """Secret by which messages are signed: whsec_ and 24 to 64 bytes as base64. Left out: one is made."""


class WebhookOut(Schema):
    """A webhook, without its secret."""

    id: str
    url: str
    events: list[Event]
    created_at: AwareDatetime
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
