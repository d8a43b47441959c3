"""Columns and fields that are unknown: kept beside the documents, left out or refused, in each format that may have
some.
"""

import json
from typing import Any

import pytest

from app.codecs.base import Bounds
from app.codecs.dispatch import body_decoder
from app.errors import InvalidRequest
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded

BOUNDS = Bounds(body_bytes=10**6, decompressed_bytes=10**6, document_bytes=10**5, documents=1000, nonzeros=1000)
CSV, NDJSON, JSON = "text/csv", "application/x-ndjson", "application/json"
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "d1", "text": "a", "who": "Ada", "more": {"n": [{}, {"deep": 1}]}},
    {"id": "d2", "text": "b", "fields": {"when": "today", "who": "its own"}, "who": "Bob"},
    {"id": "d3", "text": "c"},
]
BODIES = {
    CSV: b"id,text,who,when,,who\nd1,a,Ada,,x,1\nd2,b,Bob,today,x,2\n",
    NDJSON: b"\n".join(json.dumps(each).encode() for each in DOCUMENTS),
    JSON: json.dumps({"documents": DOCUMENTS}).encode(),
}
OF_TABLE = [{"who": "Ada", "when": "", "who.1": "1"}, {"who": "Bob", "when": "today", "who.1": "2"}]
OF_LINES = [{"who": "Ada", "more": {"n": [{}, {"deep": 1}]}}, {"when": "today", "who": "its own"}, {}]
OWN = [{}, {"when": "today", "who": "its own"}, {}]


def fields(body: bytes, media_type: str, size: int = 10**6, **query: str) -> list[dict[str, Any]]:
    """The extra fields of each document of a body in pieces of this size."""
    decoder = body_decoder({"content-type": media_type}, BOUNDS, query=query)
    batches = [batch for at in range(0, len(body), size) for batch in decoder.feed(body[at : at + size])] + list(
        decoder.finish()
    )
    found: list[dict[str, Any]] = []
    for batch in batches:
        values = [()] * batch.rows.n_rows if batch.fields is None else batch.fields.values
        names = [] if batch.fields is None else batch.fields.names
        found += [{name: value for name, value in zip(names, row, strict=False) if value is not None} for row in values]
    return found


@pytest.mark.parametrize("size", [1, 7, 10**6])
@pytest.mark.parametrize(
    ("media_type", "extra", "wanted"),
    [
        (CSV, None, OF_TABLE),
        (CSV, "keep", OF_TABLE),
        (CSV, "ignore", [{}, {}]),
        (NDJSON, "keep", OF_LINES),
        (NDJSON, "ignore", OWN),
        (JSON, "keep", OF_LINES),
        (JSON, "ignore", OWN),
    ],
)
def test_what_becomes_of_them(media_type: str, extra: str | None, wanted: list[dict[str, Any]], size: int) -> None:
    assert fields(BODIES[media_type], media_type, size, **({"extra": extra} if extra else {})) == wanted


def test_the_fields_of_a_document_need_no_asking() -> None:
    lines = b'{"text":"a","fields":{"n":1.5,"deep":{"x":[true,null]}}}\n{"text":"b","fields":null}'
    wanted: list[dict[str, Any]] = [{"n": 1.5, "deep": {"x": [True, None]}}, {}]
    assert fields(lines, NDJSON) == wanted
    assert fields(b'{"documents":[' + lines.replace(b"\n", b",") + b"]}", JSON) == wanted


REFUSED = {
    "unknown": (NDJSON, b'{"text":"a","lable":"x"}', {}, "unknown field 'lable'; did you mean 'label'? known are"),
    "a way out": (
        NDJSON,
        b'{"text":"a","who":"x"}',
        {},
        "?extra=keep keeps what is unknown beside the documents, ?extra=ignore leaves it out",
    ),
    "refused": (
        CSV,
        b"text,who\na,b\n",
        {"extra": "refuse"},
        "the table has the extra columns 'who'; ?extra=keep keeps",
    ),
    "no object": (NDJSON, b'{"text":"a","fields":[1]}', {}, "fields: "),
    "no name": (NDJSON, b'{"text":"a","fields":{"":1}}', {}, "fields: "),
    "malformed": (JSON, b'{"documents":[{"text":"a","who":{]}', {"extra": "ignore"}, "malformed"),
    "known, but wrong": (NDJSON, b'{"text":7,"who":"x"}', {"extra": "keep"}, "text: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    media_type, body, query, detail = REFUSED[name]
    with pytest.raises(InvalidDocuments) as refusal:
        fields(body, media_type, 10**6, **query)
    assert detail in str(refusal.value)


def test_words_of_the_query_are_known() -> None:
    with pytest.raises(
        InvalidRequest, match=r"extra: 'ignored' is none of keep, ignore, refuse; did you mean 'ignore'\?"
    ):
        fields(b"text\na\n", CSV, extra="ignored")


def test_objects_and_names_are_bounded() -> None:
    deep = b'{"documents":[{"text":"a","x":' + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b"}]}"
    with pytest.raises(InvalidDocuments, match="nested too deeply"):
        fields(deep, JSON, 7, extra="keep")
    with pytest.raises(LimitExceeded, match="names of extra fields"):
        fields(json.dumps({"text": "a", "fields": {f"n{k}": k for k in range(1001)}}).encode(), NDJSON)
