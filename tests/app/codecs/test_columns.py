"""Which columns of a table and which fields of JSON hold text, label and id: the request may name them."""

import json
from itertools import pairwise

import pytest

from app.codecs.dispatch import body_decoder
from app.errors import InvalidRequest
from core.documents.kinds import TextRows
from core.errors import InvalidDocuments
from storage.repositories.datasets import Batch
from tests.app.codecs.test_extra import BOUNDS, CSV, JSON, NDJSON

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
