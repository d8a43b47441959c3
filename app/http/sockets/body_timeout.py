"""The time-out of bodies that drip. Those of heads and of answers are in ``app.http.sockets.connection``."""

import asyncio
import time
from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import TooSlow
from app.http.middleware import BODY_COMPLETE, HttpMiddleware


class BodyTimeout(HttpMiddleware):
    """Refuses a body (408) that pauses for ``idle`` seconds, or over so long comes slower than ``rate`` bytes a second.

    It is a leaky bucket of patience: waiting empties it, each byte fills it by 1 / ``rate`` seconds, and it never holds
    more than ``idle`` seconds. So a fast beginning does not pay for hours of dripping.
    """

    def __init__(self, app: ASGIApp, idle: float, rate: float) -> None:
        super().__init__(app)
        self._idle = idle
        self._rate = rate

    def handle(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle the request. Raises TooSlow."""
        if BODY_COMPLETE in scope:  # most bodies come with their head: there is nothing to wait for
            return self._app(scope, receive, send)
        patience, complete = self._idle, False

        async def receive_in_time() -> Message:
            nonlocal patience, complete
            if complete:
                return await receive()
            started = time.monotonic()
            try:
                # only the time spent waiting counts: the service's own work between two parts of a body is not the
                # client's fault
                async with asyncio.timeout(patience):
                    message = await receive()
            except TimeoutError:
                raise TooSlow(self._idle, self._rate) from None
            patience = min(
                self._idle, patience - (time.monotonic() - started) + len(message.get("body", b"")) / self._rate
            )
            complete = not message.get("more_body", False)
            return message

        return self._app(scope, receive_in_time, send)
