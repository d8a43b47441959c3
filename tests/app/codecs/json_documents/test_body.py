"""JSON bodies, however they are cut, in time linear in the text."""

import gzip
import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from app.codecs.base import BLOCK_BYTES, Bounds, Reading
from app.codecs.json_documents import body as module
from app.codecs.json_documents.body import JsonDecoder
from app.codecs.json_documents.ndjson import NdjsonDecoder
from app.codecs.tables.svmlight import SvmlightDecoder
from app.codecs.transport.lines import LinesDecoder
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from tests.app.conftest import NDJSON, Gateway, Start, problem_of, publish
from tests.stores import sparse

DOCUMENTS: list[dict[str, Any]] = [
    {"indices": [1, 2], "values": [0.5, 1.0], "label": "a}b", "id": 'q"{\\'},
    {"indices": []},
    {"indices": [7], "label": "\\", "id": '"'},
    {"indices": list(range(40)), "label": "}" * 30},
    {"indices": [3], "id": "plain"},
]
TEXT, ARRAY = (json.dumps(each, indent=1).encode() for each in ({"documents": DOCUMENTS}, DOCUMENTS))


def reading(document_bytes: int) -> Reading:
    return Reading(Bounds(2**40, 2**40, document_bytes, 10**9, 10**9))


def decode(pieces: list[bytes], longest: int = 10**6) -> list[tuple[list[int], Any, str | None]]:
    decoder = JsonDecoder(reading(longest))
    batches = [*itertools.chain.from_iterable(map(decoder.feed, pieces)), *decoder.finish()]
    found = []
    for rows, labels, ids, *_ in batches:
        for place, label in enumerate(labels):
            indices = sparse(rows).indices[rows.indptr[place] : rows.indptr[place + 1]].tolist()
            found.append((indices, label, ids[place] if ids else None))
    return found


WHOLE = [(document["indices"], document.get("label"), document.get("id")) for document in DOCUMENTS]


@pytest.mark.parametrize("size", [*range(1, 60), 10**6])
def test_documents_however_they_are_cut(size: int) -> None:
    for text in (TEXT, ARRAY):
        assert decode([text[at : at + size] for at in range(0, len(text), size)]) == WHOLE


def test_documents_cut_at_random() -> None:
    chance = random.Random(5)
    for _ in range(500):
        cuts = sorted(chance.randrange(len(TEXT)) for _ in range(chance.randrange(12)))
        assert decode([TEXT[a:b] for a, b in itertools.pairwise([0, *cuts, len(TEXT)])]) == WHOLE


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_an_object_inside_is_refused_however_it_is_cut(size: int) -> None:
    text = b'{"documents": [{"indices": [1], "label": "\\"{"}, {"indices": {"a": 1}}]}'
    with pytest.raises(InvalidDocuments, match="document number 2"):
        decode([text[at : at + size] for at in range(0, len(text), size)])


HOSTILE = {
    "numbers": (b'{"indices": [', b"1,"),
    "braces in a string": (b'{"label": "', b"}"),
    "escapes": (b'{"label": "', b'\\"'),
    "strings": (b'{"a":', b'"",'),
    "spaces in a document": (b"{", b" "),
}


class Looked:
    """Counts the bytes of kept text that a decoder's searches, matches and copies go over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looked, self.bytes = self, 0

        class Text(bytearray):
            def rfind(self, what: Any, start: Any = 0, end: Any = None) -> int:
                found = super().rfind(what, start, end)
                looked.bytes += (len(self) if end is None else end) - max(found, start)
                return found

            def __getitem__(self, where: Any) -> Any:
                found = super().__getitem__(where)
                looked.bytes += len(found) if isinstance(found, bytearray) else 1
                return found

        class Pattern:
            def __init__(self, pattern: Any) -> None:
                self._pattern = pattern

            def match(self, text: Any, at: int = 0) -> Any:
                found = self._pattern.match(text, at)
                looked.bytes += found.end() - at if found else 1
                return found

        monkeypatch.setattr(module, "bytearray", Text, raising=False)
        monkeypatch.setattr(module, "_SPACE", Pattern(module._SPACE))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [500, BLOCK_BYTES])
def test_an_endless_document_is_looked_through_a_few_times_only(
    monkeypatch: pytest.MonkeyPatch, name: str, size: int
) -> None:
    """Fails when earlier bytes are looked through again with every piece that comes."""
    looked = Looked(monkeypatch)
    head, unit = HOSTILE[name]
    pieces = 2**21 // size
    decoder = JsonDecoder(reading(2**30))
    piece = (unit * size)[: size // len(unit) * len(unit)]
    assert list(decoder.feed(b'{"documents": [' + head)) == []
    for _ in range(pieces):
        assert list(decoder.feed(piece)) == []
    assert pieces * len(piece) < looked.bytes < 8 * pieces * len(piece)


def test_white_space_is_not_kept() -> None:
    decoder = JsonDecoder(reading(1000))
    for part in (
        b'{"documents": [',
        b" " * 5000,
        b'{"indices": [1]}',
        b"\n" * 5000,
        b",",
        b"\t" * 5000,
        b'{"indices": [2]}]',
        b" " * 5000,
        b"}",
    ):
        list(decoder.feed(part))
        assert len(decoder._rest) < 100
    decoder.finish()


def test_a_document_that_is_too_long_is_refused_as_soon_as_it_is() -> None:
    with pytest.raises(LimitExceeded, match="bytes in the document number"):
        decode([b'{"documents": [{"indices": [', *[b"1," * 100] * 10], 1000)


@pytest.mark.parametrize(
    ("decoder", "body", "where"),
    [
        (
            lambda longest: JsonDecoder(reading(longest)),
            b'{"documents": [{"indices": []}, {"indices": [%b]}]}',
            "number 2",
        ),
        (
            lambda longest: NdjsonDecoder(reading(longest)),
            b'{"indices": []}\n{"indices": [%b]}\n{"indices": []}\n',
            "in line 2",
        ),
        (SvmlightDecoder, b"1 1:1\n1 5:1%b\n1 1:1\n", "in line 2"),
    ],
    ids=["JSON", "NDJSON", "svmlight"],
)
@pytest.mark.parametrize("length", [1, 40, 150, 1000])
def test_a_document_that_is_too_long_is_refused_however_it_comes(
    decoder: Callable[[int], JsonDecoder | LinesDecoder], body: bytes, where: str, length: int
) -> None:
    def read(spaces: int) -> int:
        text, reader = body % (b" " * spaces), decoder(100)
        pieces = [text[at : at + length] for at in range(0, len(text), length)]
        return sum(batch.rows.n_rows for piece in pieces for batch in reader.feed(piece)) + sum(
            batch.rows.n_rows for batch in reader.finish()
        )

    assert read(80) >= 2
    with pytest.raises(LimitExceeded, match=f"bytes in the document {where}"):
        read(101)


def test_a_prediction_has_the_limit_of_an_upload(start: Start) -> None:
    gateway = start(max_document_bytes=400_000)
    publish(gateway.store)
    body = b'{"documents": [{"indices": [' + b"1," * 300_000 + b"1]}]}"
    for path, encoding in itertools.product(("/v1/datasets", "/v1/models/news/predict"), ("identity", "gzip")):
        headers = {"content-type": "application/json", "content-encoding": encoding}
        problem = problem_of(
            gateway.client.post(path, content=gzip.compress(body) if encoding == "gzip" else body, headers=headers), 413
        )
        assert "bytes in the document number" in problem["detail"]


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("method", "path", "media_type", "body"),
    [
        ("POST", "/v1/datasets", "application/json", b'{"documents": [{"id": ' + DEEP + b"]}"),
        ("POST", "/v1/datasets", "application/json", b'{"documents": [{"x": ' + DEEP + b"}]}"),
        ("POST", "/v1/datasets", NDJSON, b'{"x": ' + DEEP + b"}\n"),
        ("POST", "/v1/models/news/predict", "application/json", b'{"documents": [{"x": ' + DEEP[:50_000] + b"}]}"),
        ("POST", "/v1/models/news/predict", NDJSON, b'{"x": ' + DEEP[:50_000] + b"}\n"),
        ("POST", "/v1/jobs", "application/json", b'{"options": {"x": ' + DEEP + b"}}"),
        ("POST", "/v1/jobs", "application/json", b'{"documents": ' + DEEP + b"}"),
        ("PUT", "/v1/datasets/ds-x/labels", "application/json", b'{"labels": {"x": ' + DEEP + b"}}"),
    ],
)
@pytest.mark.usefixtures("unchanged")
def test_json_nested_deeply_is_refused(gateway: Gateway, method: str, path: str, media_type: str, body: bytes) -> None:
    problem_of(gateway.client.request(method, path, content=body, headers={"content-type": media_type}), 422)
