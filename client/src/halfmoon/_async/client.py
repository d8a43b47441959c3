"""The clients ``Halfmoon`` and ``AsyncHalfmoon``: connection, training, keys, webhooks, and access to datasets, jobs
and models.
"""

import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from halfmoon._async.datasets import AsyncDatasets
from halfmoon._async.inference import AsyncInference
from halfmoon._async.jobs import AsyncJob, AsyncJobs
from halfmoon._async.models import AsyncModel, AsyncModels
from halfmoon._async.transport import AsyncResource, AsyncTransport, operation
from halfmoon._async_only import in_thread
from halfmoon.display import pairs
from halfmoon.errors import RequestFailed
from halfmoon.local import LocalService, started
from halfmoon.records import JobRecord, Webhook
from halfmoon.shown import id_of_dataset, is_dataset
from halfmoon.values import in_path, model_name


class AsyncHalfmoon:
    """A Halfmoon service.

    ``url`` is by default HALFMOON_URL or http://127.0.0.1:8000, ``key`` HALFMOON_API_KEY. ``timeout`` is in seconds: of
    connecting, and of each wait for bytes.
    """

    def __init__(
        self, url: str | None = None, *, key: str | None = None, timeout: float = 60.0, retries: int = 4
    ) -> None:
        self._transport = AsyncTransport(url, key, timeout, retries)
        self._service: LocalService | None = None
        self.datasets = AsyncDatasets(self._transport)
        self.jobs = AsyncJobs(self._transport)
        self.models = AsyncModels(self._transport)
        self.keys = AsyncKeys(self._transport)
        self.webhooks = AsyncWebhooks(self._transport)
        self.inference = AsyncInference(self._transport)

    @classmethod
    async def local(cls, data: str | None = None, *, workers: int = 1, timeout: float = 60.0) -> Self:
        """A service of its own on this machine, which ends with the client or the process. It needs the package
        halfmoon.

        ``data`` is its folder; without one it keeps nothing.
        """
        service = await in_thread(started, data, workers)
        client = cls(service.url, timeout=timeout)
        client._service = service
        return client

    @property
    def url(self) -> str:
        """Address of the service."""
        return self._transport.url

    async def train(
        self,
        data: Any,
        model: str,
        *,
        algorithm: str = "auto",
        options: Mapping[str, Any] | None = None,
        text: Mapping[str, int] | None = None,
        start_from: str | None = None,
        publish: str | None = None,
        seed: int = 0,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> AsyncJob:
        """Train a model on a dataset, also by its id; other data become one, which takes the name of the model.

        ``more`` are fields of the job that this client does not know, ``encoder=None`` among them: the text alone.
        """
        made = None if is_dataset(data) else await self.datasets.create(data, name=model_name(model))
        fields = {
            "dataset": id_of_dataset(data if made is None else made),
            "model": model,
            "algorithm": algorithm,
            "options": options,
            "text": text,
            "start_from": start_from,
            "publish": publish,
            "seed": seed,
        }
        try:
            return await self._submit(
                {**{name: value for name, value in fields.items() if value is not None}, **more},
                idempotency_key or str(uuid.uuid4()),
            )
        except RequestFailed:
            if made is not None:  # nobody knows of it
                await made.delete()
            raise

    @operation("create_job")
    async def _submit(self, fields: Mapping[str, Any], key: str) -> AsyncJob:
        headers = {"Idempotency-Key": key}
        record = await self._transport.call(
            "POST", "/v1/jobs", JobRecord, json=fields, headers=headers, repeatable=True
        )
        return AsyncJob(self._transport, record)

    @operation("live")
    async def live(self) -> bool:
        """Whether the service answers."""
        return bool(await self._transport.call("GET", "/v1/health/live", dict[str, Any]))

    @operation("ready")
    async def ready(self) -> dict[str, Any]:
        """Whether store and Redis can be written, and the number of workers; raises Unavailable."""
        return await self._transport.call("GET", "/v1/health/ready", dict[str, Any])

    @operation("metrics")
    async def metrics(self) -> str:
        """Metrics, in the text format of Prometheus."""
        return (await self._transport.send("GET", "/metrics")).text

    @operation("show_problem")
    async def problem(self, type: str) -> str:
        """Cause and remedy of a type of problem, such as ``/problems/invalid-name``."""
        return (
            await self._transport.send("GET", f"/problems/{type.rpartition('/')[2]}", headers={"Accept": "text/plain"})
        ).text

    async def close(self) -> None:
        """Close the connections, and end a local service."""
        await self._transport.close()
        if self._service is not None:
            await in_thread(self._service.stop)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def _repr_html_(self) -> str:
        return pairs("Halfmoon", {"url": self.url, "local": self._service is not None})


class AsyncWebhooks(AsyncResource):
    """The webhooks of a service; its calls need a key of scope admin."""

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


class AsyncKeys(AsyncResource):
    """The keys of colleagues; its calls need a key of scope admin."""

    @operation("invite")
    async def invite(self, name: str, *, days: float = 30) -> dict[str, Any]:
        """Make a key by which a colleague may label; the answer alone has its text, as ``key``."""
        return await self._transport.call("POST", "/v1/keys", dict[str, Any], json={"name": name, "days": days})

    @operation("list_invited")
    async def all(self) -> list[dict[str, Any]]:
        """The keys that may only label and are valid."""
        return list((await self._transport.call("GET", "/v1/keys", dict[str, Any]))["keys"])

    @operation("revoke_invitation")
    async def revoke(self, id: str) -> None:
        """Revoke a key that may only label."""
        await self._transport.send("DELETE", f"/v1/keys/{in_path('key', id)}")


__all__ = ["AsyncHalfmoon", "AsyncModel"]
