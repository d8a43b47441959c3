"""More than 200 bodies that are made to hurt: each is answered by name, and none is decoded or encoded in one call,
least of all on the event loop.

Work is counted, not timed; ``python -m benchmarks.hostile`` measures what others wait meanwhile.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from app.codecs.base import BLOCK_BYTES
from app.predictions import service
from benchmarks.hostile_bodies import Hostile, hostile_bodies
from tests.app.conftest import TWO_CLASSES, Gateway, Start, publish
from tests.waiting import until

SIZE = 650_000
DOCUMENT_BYTES = 1 << 16
LARGE_REQUEST_BYTES = 1 << 16
LONGEST = 2 * BLOCK_BYTES + DOCUMENT_BYTES
"""Bytes that are decoded in one call: a slice, and what was left of the one before."""
NAMED = {200, 201, 202, 400, 404, 408, 413, 415, 422, 429, 507}


class Work:
    """The longest calls since the last look, on the event loop and in all."""

    def __init__(self) -> None:
        self.longest = self.on_event_loop = 0

    def counted(self, function: Callable[..., Any], size: Callable[..., int]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.longest = max(self.longest, size(*arguments))
            if is_event_loop():
                self.on_event_loop = max(self.on_event_loop, size(*arguments))
            return function(*arguments)

        return call


def is_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    found = Work()
    decoders = [
        (module, name)
        for module in [each for name, each in sys.modules.items() if name.startswith("app.")]
        for name in ("decode_json", "decode_or_none")
        if hasattr(module, name)
    ]
    assert len(decoders) >= 7
    for module, name in decoders:
        monkeypatch.setattr(module, name, found.counted(getattr(module, name), lambda decode, text: len(text)))
    # a number is written with some twenty characters
    monkeypatch.setattr(service, "_encoded", found.counted(service._encoded, lambda values: 5 * len(values)))
    return found


def send(gateway: Gateway, hostile: Hostile) -> int:
    headers = {"Content-Type": hostile.media_type, "Content-Encoding": hostile.encoding}
    return gateway.client.request(hostile.method, hostile.path, content=hostile.body, headers=headers).status_code


@pytest.mark.slow
def test_each_is_answered_by_name_and_worked_on_in_slices(start: Start, work: Work) -> None:
    gateway = start(max_document_bytes=DOCUMENT_BYTES, large_request_bytes=LARGE_REQUEST_BYTES)
    publish(gateway.store)
    dataset = gateway.upload(TWO_CLASSES)["id"]
    bodies = list(hostile_bodies(SIZE, dataset))
    assert len({each.name for each in bodies}) == len(bodies) >= 200
    wrong = []
    for hostile in bodies:
        work.longest = work.on_event_loop = 0
        status = send(gateway, hostile)
        if status not in NAMED or work.longest > LONGEST or work.on_event_loop > LARGE_REQUEST_BYTES:
            wrong.append((hostile.name, status, work.longest, work.on_event_loop))
    assert wrong == []
    until(lambda: "halfmoon_body_bytes 0.0" in gateway.client.get("/metrics").text)
