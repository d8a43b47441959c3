"""ASGI middleware: a span of each request, which continues the trace that its header ``traceparent`` names."""

import structlog
from starlette.types import Message, Receive, Scope, Send

from app.http.middleware import HttpMiddleware
from storage.process.tracing import Attributes, tracing

_HEADER = b"traceparent"
_SERVER_ERROR = 500
_UNTRACED = ("/v1/health/", "/v2/health/", "/metrics")
"""what is asked every few seconds by machines"""


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
