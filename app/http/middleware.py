"""ASGI middleware of the gateway: ids, headers, counts and chunks of answers, traces.

It is plain ASGI, because each layer then costs a request a few microseconds. ``app.main`` stacks the layers."""

import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import shortened
from app.http.access import KEY_ID
from storage.process.tracing import Attributes, tracing

REQUEST_ID = "X-Request-ID"
"""The header that carries the id of a request, in the request and in its answer."""
CONNECTIONS = "halfmoon.connections"
"""Key of the ASGI scope: number of open connections when the request came."""
BODY_COMPLETE = "halfmoon.body-complete"
"""Key of the ASGI scope: there once all of the body has come."""
HELD = "halfmoon.held"
"""Key of the ASGI scope: a list of what gives back what the request holds, as reservations. It is called when all of
the answer but its last chunk has left this process, or the client is gone."""
CHUNK_BYTES = 64 << 10
"""Bytes that are sent at a time; no more wait in memory for a client that does not read."""
_ID_HEADER = REQUEST_ID.lower().encode()
_VALID_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
MAX_LOGGED_PATH = 512
"""letters of a path in a line of the log: no path of the service is longer"""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_HEADER = b"traceparent"
_SERVER_ERROR = 500
_UNTRACED = ("/v1/health/", "/v2/health/", "/metrics")
"""what is asked every few seconds by machines"""


class HttpMiddleware(ABC):
    """ASGI middleware of HTTP requests. Other events of the server, as of its start, pass through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle an event of the server."""
        return (self.handle if scope["type"] == "http" else self._app)(scope, receive, send)

    @abstractmethod
    def handle(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle a request."""


class Answers(HttpMiddleware):
    """Gives every answer the id of its request and the security headers, counts it, and logs it with ``log_requests``.
    A long one is sent in chunks, each after the one before has left this process.

    - A valid id that the client sends is kept. All log lines of the request carry it. Failures are logged in any case,
      by ``app.http.error_handlers``.
    - Requests are counted by method, route template and status, with the time until their answer starts.
    - Every answer gets nosniff, and no-store if it says nothing of caches; HTML also gets policies of frames,
      referrers, openers and permissions. A page adds its own Content-Security-Policy, since that depends on its scripts
      and styles.
    """

    _EVERY_ANSWER = ((b"x-content-type-options", b"nosniff"),)
    _HTML = (
        *_EVERY_ANSWER,
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    )

    def __init__(self, app: ASGIApp, log_requests: bool) -> None:
        super().__init__(app)
        self._log_requests = log_requests

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request."""
        sent = next((value for name, value in scope["headers"] if name == _ID_HEADER), b"")
        id = sent if _VALID_ID.fullmatch(sent) else secrets.token_hex(8).encode()
        # each request runs in a context of its own, so nothing has to be unbound
        structlog.contextvars.bind_contextvars(request=id.decode())
        started = time.perf_counter()

        async def send_counted_and_chunked(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = dict(message["headers"])
                added = self._HTML if own.get(b"content-type", b"").startswith(b"text/html") else self._EVERY_ANSWER
                if b"cache-control" not in own:
                    added = (*added, (b"cache-control", b"no-store"))
                message["headers"] = [*message["headers"], *added, (_ID_HEADER, id)]
                route = getattr(scope.get("route"), "path", "(none)")
                status, seconds = message["status"], time.perf_counter() - started
                scope["app"].state.services.metrics.count_request(scope["method"], route, status, seconds)
                if self._log_requests:
                    _log.info(
                        "answered",
                        method=scope["method"],
                        path=shortened(scope["path"], MAX_LOGGED_PATH),
                        status=int(status),
                        seconds=round(seconds, 6),
                        key=scope.get(KEY_ID),
                    )
            elif len(message.get("body", b"")) > CHUNK_BYTES:
                view, more = memoryview(message["body"]), message.get("more_body", False)
                for start in range(0, len(view), CHUNK_BYTES):
                    end = start + CHUNK_BYTES
                    chunk = {"type": message["type"], "body": view[start:end], "more_body": more or end < len(view)}
                    await send(chunk)
                return
            await send(message)

        held = scope[HELD] = list[Callable[[], None]]()
        try:
            await self._app(scope, receive, send_counted_and_chunked)
        finally:
            for give_back in held:  # none raises
                give_back()


class RequestTracing(HttpMiddleware):
    """Records a span of each request but for probes, named by method and route.

    The names of attributes are those of the semantic conventions.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request."""
        if scope["path"].startswith(_UNTRACED):
            await self._app(scope, receive, send)
            return
        sent = next((value.decode("latin-1") for name, value in scope["headers"] if name == _HEADER), None)
        about: Attributes = {
            "http.request.method": scope["method"],
            "url.path": scope["path"],
            "url.scheme": scope["scheme"],
        }
        with tracing.span(scope["method"], about, parent=sent, kind="server") as span:
            if span is not None:
                structlog.contextvars.bind_contextvars(trace=f"{span.get_span_context().trace_id:032x}")

            async def send_and_note(message: Message) -> None:
                if message["type"] == "http.response.start" and span is not None:
                    route = getattr(scope.get("route"), "path", None)
                    if route is not None:
                        span.update_name(f"{scope['method']} {route}")
                        span.set_attribute("http.route", route)
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= _SERVER_ERROR:
                        tracing.mark_failed(span, str(message["status"]))
                await send(message)

            await self._app(scope, receive, send_and_note)
