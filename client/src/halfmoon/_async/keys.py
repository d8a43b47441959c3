"""Keys of colleagues, who label and remove nothing."""

from typing import Any

from halfmoon._async.transport import AsyncTransport
from halfmoon.operation import operation
from halfmoon.values import in_path


class AsyncKeys:
    """The keys of colleagues; its calls need a key of scope admin."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

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
