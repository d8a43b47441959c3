"""Limits on clients: on what requests hold at a time, as uploads and bytes of buffered bodies; on their connections.

A request that would hold too much is answered with 429 and these headers (draft-ietf-httpapi-ratelimit-headers):

- ``RateLimit-Policy`` names the limit and its size,
- ``RateLimit`` reports what is left of it,
- ``Retry-After`` says when to try again.
"""

import threading
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import RETRY_SECONDS, TooManyConnections, TooManyRequests, error_response, in_form_for
from app.http.middleware import CONNECTIONS, HttpMiddleware
from app.settings import GatewaySettings

_LIVENESS_PATHS = ("/v1/health/live", "/v2/health/live")


class Limit:
    """A limit on something that requests hold for a while, in all and of each caller. It may be used from the event
    loop and from threads.

    A caller is an API key, or an address where no keys are required (``app.http.access.caller_of``). So no caller can
    hold all there is. A request that is being answered soon gives back what it holds: others need not wait for long.
    """

    def __init__(self, name: str, unit: str, most: int, most_per_caller: int) -> None:
        self._name = name
        self._unit = unit
        self._most = most
        self._most_per_caller = most_per_caller
        self.used = 0
        """sum of all reservations"""
        self._by_caller: dict[str, int] = {}
        self._lock = threading.Lock()

    def reserve(self, caller: str, size: int = 0) -> "Reservation":
        """A reservation of this size, which can grow. Raises TooManyRequests."""
        reservation = Reservation(self, caller)
        reservation.grow(size)
        return reservation

    def add(self, caller: str, size: int) -> None:
        """Add to the amount in use, or take what is negative from it; raises TooManyRequests."""
        with self._lock:
            used, own = self.used, self._by_caller.get(caller, 0)
            if used + size > self._most:
                raise TooManyRequests(self._name, self._unit, self._most, self._most - used, RETRY_SECONDS)
            if own + size > self._most_per_caller:
                name, most = f"{self._name} of one caller", self._most_per_caller
                raise TooManyRequests(name, self._unit, most, most - own, RETRY_SECONDS)
            self.used = used + size
            if own + size:
                self._by_caller[caller] = own + size
            else:
                self._by_caller.pop(caller, None)


class Reservation(AbstractContextManager["Reservation"]):
    """The share of one request in a limit. As a context manager it is given back at the end of the block."""

    def __init__(self, limit: Limit, caller: str) -> None:
        self._limit = limit
        self._caller = caller
        self.size = 0

    def grow(self, size: int) -> None:
        """Reserve so much more; raises TooManyRequests."""
        self._limit.add(self._caller, size)
        self.size += size

    def __exit__(self, *error: object) -> None:
        self._limit.add(self._caller, -self.size)
        self.size = 0


class Limits(NamedTuple):
    """The limits on what requests hold."""

    uploads: Limit
    """on uploads that are received"""
    bodies: Limit
    """on bytes of bodies and answers in memory"""
    scorings: Limit
    """on datasets that are scored or wait for it"""
    exports: Limit
    """on models that are written as files or sent"""

    @classmethod
    def of(cls, settings: GatewaySettings) -> Self:
        """The limits of the settings."""
        requests = "concurrent-requests"
        return cls(
            Limit("uploads", requests, settings.max_concurrent_uploads, settings.max_concurrent_uploads_per_caller),
            Limit(
                "bodies in memory", "content-bytes", settings.max_buffered_bytes, settings.max_buffered_bytes_per_caller
            ),
            Limit(
                "datasets being scored",
                requests,
                settings.max_concurrent_scorings,
                settings.max_concurrent_scorings_per_caller,
            ),
            Limit("exports", requests, settings.max_concurrent_exports, settings.max_concurrent_exports_per_caller),
        )


class ConnectionLimit(HttpMiddleware):
    """Answers 429 on connections beyond ``most`` and closes them.

    Liveness probes are answered on any connection: an orchestrator would otherwise restart a process because it is
    busy.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        super().__init__(app)
        self._most = most

    def handle(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle the request."""
        if scope.get(CONNECTIONS, 0) <= self._most or scope["path"] in _LIVENESS_PATHS:
            return self._app(scope, receive, send)
        return in_form_for(scope["path"], error_response(TooManyConnections(self._most)))(scope, receive, send)
