"""Webhooks: addresses that the service tells when a job ends or a version is published."""

from collections.abc import Sequence

from halfmoon._async.transport import AsyncTransport
from halfmoon.operation import operation
from halfmoon.records import Webhook
from halfmoon.values import in_path


class AsyncWebhooks:
    """The webhooks of a service; its calls need a key of scope admin."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    @operation("create_webhook")
    async def create(
        self, url: str, events: Sequence[str] = ("job.ended", "version.published"), *, secret: str | None = None
    ) -> Webhook:
        """Register an address.

        The answer alone has the secret, by which the libraries of Standard Webhooks check messages.
        """
        fields = {"url": url, "events": list(events)} | ({} if secret is None else {"secret": secret})
        return await self._transport.call("POST", "/v1/webhooks", Webhook, json=fields)

    @operation("list_webhooks")
    async def all(self) -> list[Webhook]:
        """All webhooks, oldest first, with their undelivered messages."""
        return (await self._transport.call("GET", "/v1/webhooks", dict[str, list[Webhook]]))["webhooks"]

    @operation("delete_webhook")
    async def delete(self, id: str) -> None:
        """Delete a webhook, and the messages that wait for it."""
        await self._transport.send("DELETE", f"/v1/webhooks/{in_path('webhook', id)}")
