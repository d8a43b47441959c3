"""Mistakes that people make with documents: each message names the thing and the remedy."""

import pytest

from app.codecs.base import Bounds
from app.codecs.dispatch import body_decoder
from core.errors import InvalidDocuments

BOUNDS = Bounds(body_bytes=10**6, decompressed_bytes=10**6, document_bytes=10**5, documents=1000, nonzeros=10**5)
LINES, JSON, SVMLIGHT = "application/x-ndjson", "application/json", "text/x-svmlight"

MISTAKES: dict[str, tuple[str, bytes, str]] = {
    "an array as lines": (
        LINES,
        b'[{"text": "a"}]',
        'an array is not a document; send {"documents": [...]} as application/json',
    ),
    "texts as lines": (LINES, b'"hello"\n', 'a text alone is not a document; write {"text": "..."}'),
    "pretty JSON": (LINES, b'{\n  "text": "a"\n}\n', "a document is a line here; write each in one line"),
    "curl -d": (LINES, b'{"text": "a"}{"text": "b"}', "curl keeps line ends with --data-binary, and not with -d"),
    "two in a line": (
        LINES,
        b'{"text": "a"} {"text": "b"}\n',
        "a line has one document, and here a second one follows",
    ),
    "a dict of Python": (LINES, b"{'text': 'a'}\n", "names and texts stand in double quotes in JSON"),
    "a table": (LINES, b"text,label\na,b\n", "this is not JSON; a table is sent as text/csv"),
    "svmlight": (LINES, b"1 4:0.5\n", "lines of label index:value as text/x-svmlight"),
    "gzip": (LINES, b"\x1f\x8b\x08\x00", "gzip is sent with Content-Encoding: gzip"),
    "a workbook": (LINES, b"PK\x03\x04", "if it is a workbook, send it under its name that ends in .xlsx"),
    "UTF-16": (LINES, '{"text": "a"}'.encode("utf-16"), "send it in UTF-8"),
    "NaN as a label": (
        LINES,
        b'{"text": "a", "label": NaN}',
        "label: line 1: JSON is malformed: NaN is not a value of JSON; send null",
    ),
    "NaN as a text": (LINES, b'{"text": "NaN"]', "JSON is malformed: expected ',' or '}'"),
    "infinity": (LINES, b'{"indices": [1], "values": [-Infinity]}', "-Infinity is not a value of JSON"),
    "a trailing comma": (LINES, b'{"text": "a",}\n', "trailing comma"),
    "a list as label": (LINES, b'{"text": "a", "label": ["x"]}', "a document has one label here"),
    "an object as label": (LINES, b'{"text": "a", "label": {"x": 1}}', "a label is a text or an integer"),
    "a truth value as label": (LINES, b'{"text": "a", "label": true}', "a label is a text or an integer"),
    "a fraction as label": (
        LINES,
        b'{"text": "a", "label": 1.5}',
        "1.5 is a float with a fraction; a label is a text or an integer",
    ),
    "an empty label": (LINES, b'{"text": "a", "label": ""}', "an unlabeled document has none, or null"),
    "a list as id": (LINES, b'{"text": "a", "id": [1]}', "an id is a text or an integer"),
    "text null": (LINES, b'{"text": null}', "text: is missing or null"),
    "label misspelt": (LINES, b'{"text": "a", "lable": "x"}', "did you mean 'label'?"),
    "an array that is cut": (JSON, b'[{"text": "a"}', "document number 2: malformed JSON: the text ends too early"),
    "text after an array": (JSON, b'[{"text": "a"}] {}', "documents in JSON are"),
    "texts": (JSON, b'["hello"]', "document number 1: a text alone is not a document"),
    "a document alone": (JSON, b'{"text": "a"}', 'this is a document: put it in, as in {"documents": [{...}]}'),
    "text as documents": (JSON, b'{"documents": ["hello"]}', 'a text alone is not a document; write {"text": "..."}'),
    "words as labels": (
        SVMLIGHT,
        b"1 1:1\nspam 1:1\n",
        "line 2: the label 'spam' is not an integer (0: unlabeled); labels that are words need",
    ),
    "a repeated index": (SVMLIGHT, b"1 1:1\n1 2:1 2:3\n", "line 2: the index 2 is repeated"),
    "an index of 0": (SVMLIGHT, b"1 0:1\n", "line 1: the index '0' is not an integer from 1"),
    "a word as index": (SVMLIGHT, b"1 a:1\n", "line 1: the index 'a' is not an integer from 1"),
    "beyond float32": (
        SVMLIGHT,
        b"1 1:1e39\n",
        "'1e39' is not a finite number, or beyond 3.4e38, the largest of float32",
    ),
}


def read(media_type: str, body: bytes) -> int:
    """Number of documents in the body."""
    decoder = body_decoder({"content-type": media_type}, BOUNDS)
    return sum(batch.rows.n_rows for batch in [*decoder.feed(body), *decoder.finish()])


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_remedy(name: str) -> None:
    media_type, body, detail = MISTAKES[name]
    with pytest.raises(InvalidDocuments) as refusal:
        read(media_type, body)
    assert detail in str(refusal.value)


def test_indices_out_of_order_are_no_mistake() -> None:
    assert read(SVMLIGHT, b"1 7:1 2:3\n\n-1\n-1 2:1 1:1\n") == 3
