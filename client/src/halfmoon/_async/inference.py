"""The Open Inference Protocol."""

from collections.abc import Mapping
from typing import Any

from halfmoon._async.transport import AsyncResource, operation
from halfmoon.values import in_path


class AsyncInference(AsyncResource):
    """The calls of the Open Inference Protocol, version 2, as plain dicts."""

    @operation("oip_live")
    async def live(self) -> bool:
        """Whether the server answers."""
        return bool((await self._transport.call("GET", "/v2/health/live", dict[str, Any]))["live"])

    @operation("oip_ready")
    async def ready(self) -> bool:
        """Whether the server is ready; raises Unavailable."""
        return bool((await self._transport.call("GET", "/v2/health/ready", dict[str, Any]))["ready"])

    @operation("oip_server")
    async def server(self) -> dict[str, Any]:
        """Name and version of the server."""
        return await self._transport.call("GET", "/v2", dict[str, Any])

    @operation("oip_model", "oip_version")
    async def model(self, name: str, version: int | None = None) -> dict[str, Any]:
        """Input and output tensors of a model."""
        return await self._transport.call("GET", _path(name, version), dict[str, Any])

    @operation("oip_model_ready", "oip_version_ready")
    async def model_ready(self, name: str, version: int | None = None) -> bool:
        """Whether a model answers; raises NotFound."""
        return bool((await self._transport.call("GET", f"{_path(name, version)}/ready", dict[str, Any]))["ready"])

    @operation("oip_infer", "oip_infer_version")
    async def infer(self, name: str, request: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
        """Send an inference request, a dict of input tensors, and return the response, a dict of output tensors."""
        return await self._transport.call(
            "POST", f"{_path(name, version)}/infer", dict[str, Any], json=request, repeatable=True
        )


def _path(name: str, version: int | None) -> str:
    return f"/v2/models/{in_path('model', name)}" + ("" if version is None else f"/versions/{version}")
