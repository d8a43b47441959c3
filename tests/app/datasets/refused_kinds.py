"""Faults of documents that are text or have named features, each with the field and a part of the detail of its
refusal.
"""

from typing import NamedTuple

from tests.app.conftest import NDJSON


class Case(NamedTuple):
    media_type: str
    body: bytes
    fault: dict[str, str]
    """what the first error says; ``detail`` is a part of it"""
    encoding: str = "identity"


GOOD = {"text": b'{"text": "a \\" } { b"}', "features": b'{"features": {"a}": 1}}'}
"""a document that comes first, by kind"""

WRONG: dict[str, dict[str, tuple[bytes, dict[str, str]]]] = {
    "text": {
        "no part of those before": (
            b'{"id": "x", "vector": [1], "indices": [1]}',
            {"document": "x", "field": "indices", "detail": "shares one"},
        ),
        "an empty vector": (
            b'{"text": "a", "vector": []}',
            {"field": "vector", "detail": "a document without a vector leaves it out"},
        ),
        "a huge number": (b'{"text": "a", "vector": [1e39]}', {"field": "vector", "detail": "not a finite number"}),
        "a strange name": (
            b'{"text": "a", "vectors": {"a b": [1]}}',
            {"field": "vectors", "detail": "the name of a vector has 1 to 64"},
        ),
        "another kind": (b'{"indices": [1]}', {"field": "indices", "detail": "earlier documents have text"}),
        "named features": (b'{"features": {"a": 1}}', {"field": "features", "detail": "earlier documents have text"}),
        "nothing": (b'{"label": "a"}', {"field": "text", "detail": "missing"}),
        "null": (b'{"text": null}', {"field": "text", "detail": "missing"}),
        "values beside it": (
            b'{"text": "a", "values": [1]}',
            {"field": "values", "detail": "allowed only beside indices"},
        ),
        "a number": (b'{"text": 7}', {"field": "text", "detail": "int"}),
        "a list": (b'{"text": ["a"]}', {"field": "text", "detail": "array"}),
        "half a character": (b'{"text": "a\\ud800"}', {"field": "text", "detail": "\\ud800 is half of a character"}),
        "half before the end": (
            b'{"id": "x", "text": "a\\ud800 b"}',
            {"document": "x", "field": "text", "detail": "\\ud800 is half of a character"},
        ),
        "the other half": (
            b'{"text": "\\ud83d\\ude00 \\\\ud800 \\udc00"}',
            {"field": "text", "detail": "\\udc00 is half of a character"},
        ),
        "half in an id": (b'{"text": "a", "id": "\\ud800 b"}', {"field": "id", "detail": "is half of a character"}),
        "not UTF-8": (
            b'{"text": "a\xff"}',
            {"field": "text", "detail": "the byte 0xff is not UTF-8; send the text in UTF-8"},
        ),
        "an unknown field": (
            b'{"txt": "a"}',
            {"field": "txt", "detail": "known are indices, values, features, text, vector, vectors, label, id"},
        ),
    },
    "features": {
        "another kind": (b'{"text": "a"}', {"field": "text", "detail": "earlier documents have features"}),
        "a list": (b'{"features": [1]}', {"field": "features", "detail": "must be an object of names and numbers"}),
        "a text": (b'{"features": "a"}', {"field": "features", "detail": "must be an object"}),
        "a text as value": (
            b'{"features": {"a": "1"}}',
            {"field": "features", "detail": "the value of 'a' is not a number"},
        ),
        "a boolean": (
            b'{"features": {"b": 1, "a": true}}',
            {"field": "features", "detail": "the value of 'a' is not a number"},
        ),
        "null as value": (
            b'{"features": {"a": null}}',
            {"field": "features", "detail": "the value of 'a' is not a number"},
        ),
        "an object inside": (b'{"features": {"a": {"b": 1}}}', {"document": "1"}),
        "an empty name": (b'{"features": {"": 1}}', {"field": "features", "detail": "1 to 256 characters"}),
        "a long name": (
            b'{"features": {"%s": 1}}' % (b"n" * 257),
            {"field": "features", "detail": "1 to 256 characters"},
        ),
        "a repeated name": (
            b'{"id": "x", "features": {"a:": 1, "b": 2, "a:": 1}}',
            {"document": "x", "detail": "the name 'a:' is repeated"},
        ),
        "one written otherwise": (
            b'{"features": {"a": 1, "\\u0061": 2}}',
            {"field": "features", "detail": "the name 'a' is repeated"},
        ),
        "beyond float32": (
            b'{"features": {"a": 1e39}}',
            {"field": "features", "detail": "the value of 'a' is not a finite number"},
        ),
        "beyond float64": (b'{"features": {"a": 1e999}}', {"field": "features", "detail": "out of range"}),
        "NaN": (b'{"features": {"a": NaN}}', {"detail": "malformed"}),
    },
}


def kind_cases() -> dict[str, Case]:
    """Documents of text and of named features, each after a good one; both JSON bodies say the same."""
    cases = {}
    for kind, good in GOOD.items():
        for name, (text, fault) in WRONG[kind].items():
            wanted = {"document": "1"} | fault
            cases[f"json: {kind}: {name}"] = Case(
                "application/json", b'{"documents": [' + good + b", " + text + b"]}", wanted
            )
            cases[f"ndjson: {kind}: {name}"] = Case(NDJSON, good + b"\n" + text + b"\n", wanted)
    return cases
