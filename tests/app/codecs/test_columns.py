"""Columns of a table and fields of JSON: which hold text, label and id, and what becomes of others."""

import json
from itertools import pairwise
from typing import Any

import pytest

from app.codecs.base import Bounds
from app.codecs.dispatch import body_decoder
from app.errors import InvalidRequest
from core.documents.kinds import TextRows
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from storage.repositories.datasets import Batch

BOUNDS = Bounds(body_bytes=10**6, decompressed_bytes=10**6, document_bytes=10**5, documents=1000, nonzeros=1000)
CSV, NDJSON, JSON = "text/csv", "application/x-ndjson", "application/json"
DOCUMENTS = [
    {"ticket": 7, "body": "a", "topic": "sport", "text": "other"},
    {"ticket": 8, "body": "b", "topic": None, "text": "other"},
]
BODIES = {
    CSV: b"ticket,body,topic,text\n7,a,sport,other\n8,b,,other\n",
    NDJSON: b"".join(json.dumps(each).encode() + b"\n" for each in DOCUMENTS),
    JSON: json.dumps({"documents": DOCUMENTS}).encode(),
}


def batch(media_type: str, body: bytes, **query: str) -> Batch:
    decoder = body_decoder({"content-type": media_type}, BOUNDS, query=query)
    (found,) = [*decoder.feed(body), *decoder.finish()]
    return found


def texts(found: Batch) -> list[str]:
    assert isinstance(found.rows, TextRows)
    return [bytes(found.rows.data[start:end]).decode() for start, end in pairwise(found.rows.indptr)]


@pytest.mark.parametrize("media_type", BODIES)
def test_they_are_named_in_tables_and_in_json_alike(media_type: str) -> None:
    found = batch(media_type, BODIES[media_type], text="body", label="topic", id="ticket", extra="keep")
    assert (found.labels, found.ids, texts(found)) == (["sport", None], ["7", "8"], ["a", "b"])
    assert found.fields is not None
    assert (found.fields.names, [*map(list, found.fields.values)]) == (["text"], [["other"], ["other"]])


@pytest.mark.parametrize("media_type", BODIES)
def test_an_empty_name_reads_none(media_type: str) -> None:
    found = batch(media_type, BODIES[media_type].replace(b"ticket", b"id"), text="body", label="", extra="keep")
    assert (found.labels, found.ids) == ([None, None], ["7", "8"])


REFUSED: dict[str, tuple[str, bytes, dict[str, str], str]] = {
    "text by another name": (
        NDJSON,
        b'{"text": "a"}',
        {"text": "body"},
        "unknown field 'text'; known are indices, values, features, body",
    ),
    "its type": (NDJSON, b'{"body": 5}', {"text": "body"}, "body: line 1: must be a text, not an integer"),
    "advice": (
        NDJSON,
        b'{"text": "a", "topic": ["x"]}',
        {"label": "topic"},
        "topic: line 1: must be a number or a text, not an array; a document has one",
    ),
    "a name with a meaning": (
        JSON,
        b'{"documents": []}',
        {"text": "vector"},
        "text: the field 'vector' has a meaning of its own",
    ),
    "one name twice": (JSON, b'{"documents": []}', {"text": "x", "label": "x"}, "text: the field 'x' has a meaning"),
    "one column twice": (CSV, b"text\na\n", {"label": "text"}, "label: the column 'text' holds the text already"),
    "no columns": (
        "text/x-svmlight",
        b"1 1:1\n",
        {"label": "y"},
        "label: is for columns of a table or fields of JSON; text/x-svmlight has neither",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name: str) -> None:
    media_type, body, query, said = REFUSED[name]
    with pytest.raises((InvalidRequest, InvalidDocuments)) as refused:
        batch(media_type, body, **query)
    assert said in str(refused.value)


def test_the_default_of_a_column_that_is_taken_is_none() -> None:
    found = batch(CSV, b"label\nabc\n", text="label")
    assert (found.labels, texts(found)) == ([None], ["abc"])


WITH_OTHERS: list[dict[str, Any]] = [
    {"id": "d1", "text": "a", "who": "Ada", "more": {"n": [{}, {"deep": 1}]}},
    {"id": "d2", "text": "b", "fields": {"when": "today", "who": "its own"}, "who": "Bob"},
    {"id": "d3", "text": "c"},
]
BODIES_WITH_OTHERS = {
    CSV: b"id,text,who,when,,who\nd1,a,Ada,,x,1\nd2,b,Bob,today,x,2\n",
    NDJSON: b"\n".join(json.dumps(each).encode() for each in WITH_OTHERS),
    JSON: json.dumps({"documents": WITH_OTHERS}).encode(),
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
    assert fields(BODIES_WITH_OTHERS[media_type], media_type, size, **({"extra": extra} if extra else {})) == wanted


def test_the_fields_of_a_document_need_no_asking() -> None:
    lines = b'{"text":"a","fields":{"n":1.5,"deep":{"x":[true,null]}}}\n{"text":"b","fields":null}'
    wanted: list[dict[str, Any]] = [{"n": 1.5, "deep": {"x": [True, None]}}, {}]
    assert fields(lines, NDJSON) == wanted
    assert fields(b'{"documents":[' + lines.replace(b"\n", b",") + b"]}", JSON) == wanted


REFUSED_OTHERS = {
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


@pytest.mark.parametrize("name", REFUSED_OTHERS)
def test_what_is_refused(name: str) -> None:
    media_type, body, query, detail = REFUSED_OTHERS[name]
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
