"""No call of a compiled function takes long: it holds the interpreter, and all other requests wait for its end."""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from app.codecs.base import Bounds, in_blocks
from app.codecs.json.struct import decode_struct
from app.codecs.transport.encodings import reserve_nothing
from app.errors import InvalidRequest
from app.jobs.schemas import JobBody
from app.predictions.service import decode_documents
from app.serve import GARBAGE_THRESHOLDS
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded

BOUNDS = Bounds(1 << 27, 1 << 27, 1 << 21, 1 << 24, 1 << 27)
LONGEST_SECONDS = 0.015
"""of a processor; those that were mended took 90 ms where now the longest of all takes some 2"""


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    """What is collected in a test process is not what a gateway has."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def longest_call(work: Callable[[], object]) -> tuple[float, str]:
    """The compiled function whose call takes the longest, with its seconds of a processor."""
    begun: list[float] = []
    longest = (0.0, "")

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal longest
        if event == "c_call":
            begun.append(time.thread_time())
        elif event in ("c_return", "c_exception") and begun:
            longest = max(longest, (time.thread_time() - begun.pop(), f"{argument} in {frame.f_code.co_qualname}"))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return longest


def read(body: bytes) -> None:
    with suppress(InvalidDocuments, LimitExceeded):
        for _ in decode_documents(in_blocks(body), {"content-type": "application/json"}, BOUNDS):
            pass


def read_struct(body: bytes) -> None:
    with suppress(InvalidRequest):
        decode_struct(memoryview(body), JobBody, reserve_nothing)


WORK: dict[str, Callable[[], None]] = {
    "space": lambda: read_struct(b" " * (1 << 26)),
    "brackets in texts": lambda: read(b'{"documents":[' + b'{"text":"}]},{"},' * (1 << 16) + b'{"text":""}]}'),
    "a document that is too long": lambda: read(b'{"documents":[{"indices":[' + b"0," * (1 << 20) + b"0]}]}"),
    "a document that is not JSON": lambda: read(b'{"documents":[{"values":[' + b"-," * (1 << 19) + b"NaN]}]}"),
    "half a character": lambda: read(b'{"documents":[{"text":"' + b"a" * (1 << 20) + rb'\ud83d"}]}'),
}


@pytest.mark.parametrize("work", WORK)
def test_no_call_takes_long(work: str) -> None:
    seconds, name = longest_call(WORK[work])
    assert seconds < LONGEST_SECONDS, name


def test_that_a_long_call_is_found() -> None:
    seconds, name = longest_call(lambda: bytes(1 << 26).count(b"a"))
    assert seconds > 0
    assert "count" in name


def test_garbage_is_not_looked_for_again_and_again() -> None:
    """That holds the interpreter, too; by default a gateway would look some sixty times in each block."""
    usual, before = gc.get_threshold(), gc.get_stats()[0]["collections"]
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    gc.enable()
    read(b'{"documents":[' + b'{"indices":[]},' * (1 << 17) + b'{"indices":[]}]}')
    gc.set_threshold(*usual)
    assert gc.get_stats()[0]["collections"] <= before + 160
