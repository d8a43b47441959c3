"""The Open Inference Protocol."""

from collections.abc import Mapping
from typing import Any

from halfmoon._sync.transport import Transport
from halfmoon.operation import operation
from halfmoon.values import in_path


class Inference:
    """The calls of the Open Inference Protocol, version 2, as plain dicts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @operation("oip_live")
    def live(self) -> bool:
        """Whether the server answers."""
        return bool((self._transport.call("GET", "/v2/health/live", dict[str, Any]))["live"])

    @operation("oip_ready")
    def ready(self) -> bool:
        """Whether the server is ready; raises Unavailable."""
        return bool((self._transport.call("GET", "/v2/health/ready", dict[str, Any]))["ready"])

    @operation("oip_server")
    def server(self) -> dict[str, Any]:
        """Name and version of the server."""
        return self._transport.call("GET", "/v2", dict[str, Any])

    @operation("oip_model", "oip_version")
    def model(self, name: str, version: int | None = None) -> dict[str, Any]:
        """Input and output tensors of a model."""
        return self._transport.call("GET", _path(name, version), dict[str, Any])

    @operation("oip_model_ready", "oip_version_ready")
    def model_ready(self, name: str, version: int | None = None) -> bool:
        """Whether a model answers; raises NotFound."""
        return bool((self._transport.call("GET", f"{_path(name, version)}/ready", dict[str, Any]))["ready"])

    @operation("oip_infer", "oip_infer_version")
    def infer(self, name: str, request: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
        """Answer tensors by tensors."""
        return self._transport.call(
            "POST", f"{_path(name, version)}/infer", dict[str, Any], json=request, repeatable=True
        )


def _path(name: str, version: int | None) -> str:
    return f"/v2/models/{in_path('model', name)}" + ("" if version is None else f"/versions/{version}")
