"""Traces: when they are on, and that their collector holds nobody up."""

import threading

import pytest
from opentelemetry.sdk.trace import SpanProcessor

from storage.process import tracing as module
from storage.process.tracing import Tracing, tracing, wanted
from tests.spans import Spans, spans

__all__ = ["spans"]
COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.fixture(autouse=True)
def _no_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "PROTOCOL", "TRACES_PROTOCOL"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        (COLLECTOR, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        (COLLECTOR | {"OTEL_TRACES_EXPORTER": "none"}, False),
        (COLLECTOR | {"OTEL_SDK_DISABLED": "true"}, False),
        (COLLECTOR | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False),
        (COLLECTOR | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
    ],
)
def test_the_environment_asks_for_traces(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wanted() is expected


def test_without_the_extra_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setattr(module, "find_spec", missing)
    assert not wanted()


def test_while_they_are_off_nothing_is_recorded() -> None:
    off = Tracing()
    with off.span("any") as span:
        assert span is None
        assert off.traceparent() is None
    off.stop()


def test_a_span_is_told_to_others_and_continued(spans: Spans) -> None:
    with tracing.span("here"):
        told = tracing.traceparent()
    with pytest.raises(KeyError), tracing.span("there", {"n": 1}, parent=told):
        raise KeyError
    here, there = spans.named()["here"], spans.named()["there"]
    assert here.context is not None
    assert there.parent is not None
    assert told is not None
    assert told.startswith(f"00-{here.context.trace_id:032x}-{here.context.span_id:016x}-")
    assert there.parent.span_id == here.context.span_id
    assert [event.name for event in there.events] == ["exception"]
    with tracing.span("alone", parent="nonsense"):
        pass
    assert spans.named()["alone"].parent is None


def test_a_collector_that_hangs_holds_no_process_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, released = threading.Event(), threading.Event()

    class Hanging(SpanProcessor):
        def shutdown(self) -> None:
            asked.set()
            released.wait()

    monkeypatch.setattr(module, "_SEND_SECONDS", 0.01)
    one = Tracing()
    one.start("halfmoon-test", Hanging())
    one.stop()
    assert asked.is_set()
    assert not one.is_on
    released.set()
