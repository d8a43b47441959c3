"""A file of Arrow or Parquet harms only the process that reads it."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pytest

from app.codecs.base import Bounds
from app.codecs.dispatch import body_decoder
from app.codecs.tables import child
from core.documents.kinds import TextRows
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from tests.app.codecs.encodings import parquet

BOUNDS = Bounds(10**8, 10**10, 10**6, 10**6, 10**5)
PARQUET = "application/vnd.apache.parquet"


GOOD = parquet({"text": ["x y", "\u00e9"], "label": ["sport", ""], "id": ["a", None]})


def read(body: bytes, bounds: Bounds = BOUNDS) -> list[str]:
    decoder = body_decoder({"content-type": PARQUET}, bounds)
    texts: list[str] = []
    for batch in [*decoder.feed(body), *decoder.finish()]:
        assert isinstance(batch.rows, TextRows)
        texts += batch.rows
    return texts


@pytest.fixture
def fresh_helper() -> Iterator[None]:
    """No helper before the test, and none after it."""
    child._stop()
    yield
    child._stop()


@pytest.mark.parametrize(
    "harm",
    [
        "lambda *all: os.abort()",
        "lambda *all: bytearray(1 << 33)",
        "lambda *all: 1 / 0",
        "lambda *all: next(number for number in iter(int, 1) if number)",
        "lambda file, *all: [(file, 1)]",
    ],
)
def test_the_death_of_a_child_refuses_its_file_alone(
    harm: str, fresh_helper: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = "import os; from app.codecs.tables import helper as helper; helper._SECONDS = 1"
    monkeypatch.setattr(child, "HELPER", ("-c", f"{start}; helper.read_rows = {harm}; helper.main()"))
    with pytest.raises(InvalidDocuments, match=r"the process that read it has ended.*smaller row groups"):
        read(GOOD)
    with pytest.raises(InvalidDocuments, match="has ended"):
        read(GOOD)


@pytest.mark.parametrize(("at", "byte"), [(264, 55), (264, 125), (246, 59), (425, 67), (494, 34)])
def test_wrong_bytes_that_ended_the_gateway(at: int, byte: int) -> None:
    body = bytearray(GOOD)
    body[at] = byte
    with suppress(InvalidDocuments):
        read(bytes(body))
    assert read(GOOD) == ["x y", "\u00e9"]


def test_a_helper_that_has_ended_is_started_again() -> None:
    assert read(GOOD)
    assert child._helper is not None
    before = child._helper[0]
    before.kill()
    before.wait()
    assert read(GOOD) == ["x y", "\u00e9"]
    assert child._helper[0] is not before


def test_a_text_that_is_repeated_without_end_is_counted_as_it_is_read() -> None:
    body = parquet({"text": pa.array(["x" * 100_000]).dictionary_encode().take(pa.array([0] * 400_000))})
    assert len(body) < 10_000
    with pytest.raises(LimitExceeded, match="decompressed body") as caught:
        read(body)
    assert caught.value.limit == 1 << 26


def test_texts_beyond_the_bound_of_the_settings() -> None:
    body = parquet({"text": [f"{row} " * 100 for row in range(10_000)]})
    with pytest.raises(LimitExceeded, match="decompressed body") as caught:
        read(body, Bounds(10**8, 10**6, 10**6, 10**6, 10**5))
    assert caught.value.limit == 10**6
