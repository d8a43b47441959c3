"""Large JSON, cut into slices: together they are the whole, wherever the cuts fall, and no slice is large."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.codecs.base import BLOCK_BYTES
from app.codecs.json import struct as slices_module
from app.codecs.json import struct as struct_module
from app.codecs.json.struct import OBJECT_BYTES, decode_struct, decoded_slices, elements, slices
from app.codecs.json.text import InvalidJson
from app.codecs.transport.encodings import reserve_nothing
from storage.errors import LimitExceeded
from tests.calls import noted

TEXT = st.text(st.sampled_from('ab\\",[]{}: \n\u00e9'), max_size=6)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
CONTAINERS = st.lists(VALUES, max_size=5) | st.dictionaries(TEXT, VALUES, max_size=5)
EXACT = 1 << 20


def written(value: Any, spaced: bool, ascii_only: bool) -> memoryview:
    return memoryview(
        json.dumps(value, ensure_ascii=ascii_only, separators=(" , ", " : ") if spaced else (",", ":")).encode()
    )


@given(CONTAINERS, st.booleans(), st.booleans(), st.integers(1, 20))
def test_slices_and_elements_are_the_whole(value: Any, spaced: bool, ascii_only: bool, scanned: int) -> None:
    text = written(value, spaced, ascii_only)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices_module, "BLOCK_BYTES", 0)
        patch.setattr(slices_module, "_SCANNED_BYTES", scanned)
        parts = list(decoded_slices(msgspec.json.decode, text, EXACT, "x"))
        singles = [bytes(each) for each in elements(text)]
    if isinstance(value, list):
        assert [each for part in parts for each in part] == value
        assert [json.loads(each) for each in singles] == value
    else:
        assert {key: each for part in parts for key, each in part.items()} == value
        assert [key for each in singles for key in json.loads(b"{" + each + b"}")] == list(value)


@pytest.mark.parametrize("element", [b"0", b"[]", b'"\\\\"', b'"\\"],["', b"[0,[0]]", b'{"a":[]}'])
@pytest.mark.parametrize("bytes_in_all", [3 * BLOCK_BYTES, 3 * BLOCK_BYTES + 1])
def test_no_slice_is_large(element: bytes, bytes_in_all: int) -> None:
    count = bytes_in_all // (len(element) + 1)
    text = memoryview(b"[" + b",".join([element] * count) + b"]")
    lengths = [len(each) for each in slices(text, len(element), "x")]
    assert max(lengths) <= BLOCK_BYTES
    assert sum(lengths) + len(lengths) + 1 == len(text)


FILLER = b"0," * BLOCK_BYTES


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"0", b"[", b"{", b"]", b"[}", b'"[]"', b"[1", b'["]', b'["\\"]', b"[1]]", b"[[1]", b"[1],[2]"),
        *(
            b"[" + FILLER + end
            for end in (b"]", b" ]", b",0]", b"0", b"0}", b"0]]", b'"0]', b"0],[0]", b"[0]", b"0][0]")
        ),
        b"[," + FILLER + b"0]",
        b"[" + FILLER + b" " * BLOCK_BYTES + b",0]",
    ],
    ids=lambda text: f"{text[:4]!r}…{text[-8:]!r} of {len(text)}",
)
def test_what_is_no_array_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidJson):
        list(decoded_slices(msgspec.json.decode, memoryview(text), EXACT, "x"))


def test_an_element_may_be_longer_than_a_slice_but_not_without_end() -> None:
    long = b'"' + b"x" * 3 * BLOCK_BYTES + b'"'
    text = memoryview(b"[0," + long + b",0]")
    assert [
        len(each) for part in decoded_slices(msgspec.json.decode, text, len(long), "x") for each in part if each
    ] == [len(long) - 2]
    with pytest.raises(LimitExceeded, match=r"^more than 10 bytes in a thing$"):
        list(slices(text, 10, "a thing"))


class Body(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    options: dict[str, Any] = {}
    bulk: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    other: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw, name="class")


BULK = b"[" + FILLER + b"0]"


def struct(text: bytes) -> Body:
    return decode_struct(text, Body, reserve_nothing)


def test_raw_fields_may_be_large_and_all_others_together_not() -> None:
    found = struct(b' { "name" : "n", "bulk" : ' + BULK + b' , "options":{"a":[1]}, "class": null } ')
    assert (found.name, found.options, bytes(found.bulk) == BULK, bytes(found.other)) == (
        "n",
        {"a": [1]},
        True,
        b"null",
    )
    for text, what in (
        (b'{"name":"n","options":{"a":' + BULK + b"}}", "the field options"),
        (b'{"name":"' + b"n" * BLOCK_BYTES + b'"}', "the field name"),
        (b"{" + b'"name":"n",' * BLOCK_BYTES + b'"name":"n"}', "the fields of the body"),
        (b'{"name":"n","\\u0062ulk":' + BULK + b"}", "the fields of the body"),
    ):
        with pytest.raises(LimitExceeded, match=f"^more than {BLOCK_BYTES} bytes in {what}$"):
            struct(text)


@pytest.mark.parametrize("bulk", [b"[0]", BULK])
def test_errors_of_large_and_of_small_bodies_are_the_same(bulk: bytes) -> None:
    for text, field, detail in (
        (
            b'{"bulk":%s,"nam":"n"}',
            "nam",
            "unknown field 'nam'; did you mean 'name'? known are name, options, bulk, class",
        ),
        (b'{"bulk":%s}', "name", "is missing"),
        (b'{"bulk":%s,"name":1}', "name", "must be a text, not an integer"),
    ):
        with pytest.raises(InvalidJson) as caught:
            struct(text % bulk)
        assert (caught.value.field, caught.value.detail) == (field, detail)


@pytest.mark.parametrize(
    "unit", [b"[],", b"{},", b'{"":0},', b'{"":{}},', b'{"":[]},', b'"",', b"0,", b"1.5,", b'{"a":{"a":[]}},']
)
def test_decoded_values_take_no_more_memory_than_is_reserved(unit: bytes) -> None:
    import tracemalloc

    reserved: list[int] = []
    text = b'{"name":"n","options":{"a":[' + unit * (BLOCK_BYTES // len(unit) - 20) + b"0]}}"
    tracemalloc.start()
    found = decode_struct(text, Body, reserved.append)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.options["a"]
    assert taken <= sum(reserved) <= OBJECT_BYTES * len(text)


def test_the_text_of_raw_fields_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = noted(monkeypatch, struct_module, "decode_json", lambda _, text: len(text))
    struct(b'{"name":"n","bulk":' + BULK + b"}")
    assert lengths == [len(b'{"name":"n","bulk":null}')]
