"""A proxy before several gateways: each connection goes to the next one that takes it, as a Kubernetes service does."""

import asyncio
from contextlib import suppress

from tests.storm.proxy import Relay, Streams


class Balancer(Relay):
    """A relay to ports of this machine in turn, which may be added and removed at any time."""

    def __init__(self) -> None:
        super().__init__()
        self._targets: list[int] = []
        self._next = 0

    def add(self, port: int) -> None:
        """Send new connections to this port, too."""
        self._targets = [*self._targets, port]

    def remove(self, port: int) -> None:
        """Send no new connection to this port; those that are open stay."""
        self._targets = [each for each in self._targets if each != port]

    async def _opened(self) -> Streams:
        self._next += 1
        turn = self._next % max(1, len(self._targets))
        for port in (*self._targets[turn:], *self._targets[:turn]):
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        raise ConnectionRefusedError
