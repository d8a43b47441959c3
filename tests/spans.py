"""Spans as they would be sent, kept in memory."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from storage.process.tracing import tracing
from tests.there import there


class Spans:
    """The spans that have ended."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()

    def named(self) -> dict[str, ReadableSpan]:
        """By name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Records spans during the test."""
    found = Spans()
    tracing.start("halfmoon-test", SimpleSpanProcessor(found.exporter))
    yield found
    tracing.stop()


def parent_of(span: ReadableSpan) -> str:
    """Id of its parent."""
    return f"{there(span.parent).span_id:016x}"


def id_of(span: ReadableSpan) -> str:
    return f"{there(span.context).span_id:016x}"


def trace_of(span: ReadableSpan) -> str:
    return f"{there(span.context).trace_id:032x}"
