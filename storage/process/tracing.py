"""Traces by OpenTelemetry: spans of requests and jobs, in one trace from the request to the version that its job
publishes.

They are off unless the extra ``tracing`` is installed and the environment names a collector by
``OTEL_EXPORTER_OTLP_ENDPOINT``; then nothing of OpenTelemetry is imported here (redis-py imports its SDK by itself
where it is installed). The SDK reads the other variables ``OTEL_…``: sampler, headers, limits, attributes of the
resource.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import structlog

if TYPE_CHECKING:
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Span

Kind = Literal["internal", "server", "consumer"]
Attributes = Mapping[str, str | int]
_SEND_SECONDS = 2.0
"""seconds that a process which ends waits for its last spans to be sent"""
_TRACEPARENT = "traceparent"
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def wanted() -> bool:
    """Whether spans are to be sent, and can be. Reasons against it are logged: traces are no reason not to work."""
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp" if _variable("ENDPOINT") else "none")
    if exporter != "otlp" or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    protocol = _variable("PROTOCOL", "http/protobuf")
    if protocol != "http/protobuf":
        _log.warning("no traces are sent: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf", protocol=protocol)
        return False
    if not _is_installed():
        _log.warning("no traces are sent, since the extra is missing: pip install 'halfmoon[tracing]'")
        return False
    return True


def _is_installed() -> bool:
    try:
        return all(find_spec(f"opentelemetry.{name}") is not None for name in ("sdk.trace", "exporter.otlp.proto.http"))
    except ModuleNotFoundError:  # of a package above it
        return False


def _variable(name: str, default: str = "") -> str:
    return (
        os.environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or os.environ.get(f"OTEL_EXPORTER_OTLP_{name}") or default
    )


class Tracing:
    """The spans of this process. While it is off, each call costs a test."""

    def __init__(self) -> None:
        self._provider: TracerProvider | None = None
        self._propagator: TextMapPropagator
        """writes and reads what other processes are told of a span; there since the start"""

    @property
    def is_on(self) -> bool:
        """Whether spans are recorded."""
        return self._provider is not None

    def start(self, service: str, processor: "SpanProcessor | None" = None) -> None:
        """Record spans from now on, under the name of this service unless OTEL_SERVICE_NAME gives another.

        Not before a fork: it starts a thread.
        """
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        provider = TracerProvider(
            resource=Resource.create({} if named else {"service.name": service}), shutdown_on_exit=False
        )
        if processor is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            processor = BatchSpanProcessor(OTLPSpanExporter())
        provider.add_span_processor(processor)
        self._provider, self._propagator = provider, TraceContextTextMapPropagator()

    def stop(self) -> None:
        """Send the recorded spans, for a bounded time: a collector that does not answer holds nobody up."""
        provider, self._provider = self._provider, None
        if provider is not None:
            thread = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
            thread.start()
            thread.join(_SEND_SECONDS)

    @contextmanager
    def span(
        self, name: str, attributes: Attributes | None = None, *, parent: str | None = None, kind: Kind = "internal"
    ) -> Iterator["Span | None"]:
        """A span around the block; None while spans are off. ``parent``: a traceparent of another process, else the
        span around this one.

        An exception that leaves it is recorded with it.
        """
        if self._provider is None:
            yield None
            return
        from opentelemetry.trace import SpanKind

        context = None if parent is None else self._propagator.extract({_TRACEPARENT: parent})
        tracer = self._provider.get_tracer("halfmoon")
        with tracer.start_as_current_span(name, context, SpanKind[kind.upper()], attributes) as span:
            yield span

    def mark_failed(self, span: "Span", kind: str) -> None:
        """Mark the work of a span as failed."""
        from opentelemetry.trace import StatusCode

        span.set_status(StatusCode.ERROR)
        span.set_attribute("error.type", kind)

    def add(self, name: str, began: datetime, ended: datetime) -> None:
        """A span of work that is over, within the span around this call."""
        if self._provider is not None:
            span = self._provider.get_tracer("halfmoon").start_span(name, start_time=int(began.timestamp() * 1e9))
            span.end(int(ended.timestamp() * 1e9))

    def traceparent(self) -> str | None:
        """The span around this call as other processes are told it; None while spans are off."""
        if self._provider is None:
            return None
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get(_TRACEPARENT)


tracing = Tracing()
"""the spans of this process; a worker's children start their own, each after its fork"""


def load() -> None:
    """Load the exporter of spans, so that forked children share it."""
    import opentelemetry.exporter.otlp.proto.http.trace_exporter
    import opentelemetry.sdk.trace.export

    assert opentelemetry.sdk.trace.export
