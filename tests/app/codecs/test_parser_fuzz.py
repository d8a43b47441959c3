"""Fuzzing of every parser of bodies: the result is documents or a named error, however the body is cut."""

import gzip
import json
from collections.abc import Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from app.codecs.base import Reading
from app.codecs.dispatch import FORMATS, check_length, decompressor_of
from app.codecs.json_documents.document import PARTS
from app.codecs.tables import child, helper
from app.codecs.transport.encodings import reserve_nothing
from app.datasets.schemas import LabelsBody
from app.http.requests import _decoded
from app.inference.service import InferBody
from app.jobs.schemas import JobBody
from app.models.schemas import AliasBody
from storage.errors import LimitExceeded
from tests.app.codecs.encodings import npz
from tests.app.codecs.good_bodies import GOOD
from tests.app.codecs.outcomes import BOUNDS, REFUSALS, cut, inferred, outcome, parsed


@st.composite
def mutated(draw: st.DrawFn, good: Sequence[bytes]) -> bytes:
    """A good body with some bytes changed, removed, repeated or put in."""
    data = bytearray(draw(st.sampled_from(good)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 4)):
            case 0:
                del data[at:]
            case 1:
                data[at : at + 1] = draw(st.binary(max_size=4))
            case 2:
                data[at:at] = draw(
                    st.sampled_from(
                        [
                            b"{",
                            b"}",
                            b"[",
                            b'"',
                            b"\\",
                            b"\n",
                            b",",
                            b"\r",
                            b"null",
                            b"1e999",
                            b"-1",
                            b"NaN",
                            b"\xff",
                            b"PK\x05\x06",
                        ]
                    )
                )
            case 3:
                data[at:at] = data[at : at + draw(st.integers(1, 30))]
            case _:
                del data[at : at + draw(st.integers(1, 30))]
    return bytes(data)


@pytest.mark.parametrize("media_type", FORMATS)
@given(data=st.data(), places=st.lists(st.integers(0, 10_000), max_size=6))
@profile(max_examples=150)
def test_bodies_that_were_damaged(media_type: str, data: st.DataObject, places: list[int]) -> None:
    body = data.draw(st.one_of(mutated(GOOD[media_type]), st.binary(max_size=300)))
    whole = outcome(lambda: parsed(media_type, [body]))
    assert outcome(lambda: parsed(media_type, cut(body, places))) == whole


def read_here(file: IO[bytes], kind: child.FileKind, reading: Reading) -> Generator[Any, None, list[str]]:
    """As in a child, in this process: to fork a child for each of some thousand files takes minutes."""
    yield from (batch for batch, _ in helper.read_rows(file, kind, reading))
    return []


@pytest.mark.parametrize("media_type", FORMATS)
def test_bodies_that_were_not_damaged(media_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {outcome(partial(parsed, media_type, [body]))[0] for body in GOOD[media_type]} == {"documents"}
    monkeypatch.setattr(child, "_read_in_child", read_here)
    for body in GOOD[media_type]:
        for end in range(len(body)):
            assert outcome(partial(parsed, media_type, [body[:end]]))[0] in ("documents", "InvalidDocuments")


def packed(body: bytes) -> bytes:
    """The same in every run: else the time is in it."""
    return gzip.compress(body, mtime=0)


@given(
    body=st.one_of(
        st.binary(max_size=200), st.binary(max_size=200).map(packed), mutated([packed(GOOD["application/json"][0])])
    )
)
@profile(max_examples=150)
def test_gzip_that_was_damaged(body: bytes) -> None:
    outcome(lambda: parsed("application/json", [body], "gzip"))
    unpacker = decompressor_of({"content-encoding": "gzip"}, BOUNDS)
    with suppress(*REFUSALS):
        assert sum(map(len, unpacker.feed(body))) <= BOUNDS.decompressed_bytes
        unpacker.finish()


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from([*PARTS, "values", "id", "label", "labels", "not", "votes", "weight", "x"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(
    documents=st.lists(
        st.one_of(
            JSON,
            *(
                st.fixed_dictionaries(
                    {field: JSON},
                    optional=dict.fromkeys(("values", "id", "label", "labels", "not", "votes", "weight"), JSON),
                )
                for field in PARTS
            ),
        ),
        max_size=4,
    )
)
@profile(max_examples=200)
def test_documents_of_wrong_types(documents: list[object]) -> None:
    lines = [json.dumps(document).encode() for document in documents]
    outcome(lambda: parsed("application/json", [b'{"documents": [' + b",".join(lines) + b"]}"]))
    outcome(lambda: parsed("application/x-ndjson", [b"\n".join(lines)]))


@given(
    arrays=st.dictionaries(
        st.sampled_from(
            [
                *("indptr", "indices", "data", "shape", "X", "labels", "labeled", "ids", "format", "other"),
                *("indicators", "classes", "weights"),
            ]
        ),
        st.one_of(
            st.lists(st.integers(-3, 12), max_size=6).map(np.array),
            st.lists(st.floats(width=32), max_size=6).map(np.array),
            st.lists(st.text(max_size=4), max_size=6).map(lambda texts: np.array(texts, dtype="U4")),
            st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda shape: np.ones(shape, order="F")),
            st.sampled_from(
                [
                    np.array(1),
                    np.zeros(3, bool),
                    np.zeros(2, "M8[s]"),
                    np.zeros(2, complex),
                    np.zeros(2, [("a", "i4")]),
                    np.zeros((2, 2, 2)),
                ]
            ),
        ),
        max_size=6,
    )
)
@profile(max_examples=200)
def test_arrays_of_wrong_types(arrays: dict[str, object]) -> None:
    outcome(lambda: parsed("application/x-npz", [npz(arrays)]))


TENSOR = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["indptr", "indices", "data", "X", "?"]),
        "shape": st.lists(st.integers(-1, 5), max_size=3),
        "datatype": st.sampled_from(["INT64", "UINT32", "FP32", "FP64", "BYTES", ""]),
        "data": st.one_of(JSON, st.lists(st.one_of(st.integers(-1, 2**40), st.floats()), max_size=8)),
    }
)


@given(tensors=st.lists(TENSOR, max_size=4), shape=st.lists(st.integers(0, 3), min_size=2, max_size=2))
@example(tensors=[{"name": "X", "shape": [10**9, 10**9], "datatype": "FP32", "data": []}], shape=[0, 0])
@profile(max_examples=200)
def test_tensors_of_wrong_types(tensors: list[dict[str, object]], shape: list[int]) -> None:
    outcome(lambda: inferred(json.dumps({"inputs": tensors}).encode()))


@pytest.mark.parametrize("kind", [JobBody, LabelsBody, AliasBody, InferBody])
@given(data=st.data())
@profile(max_examples=60)
def test_small_bodies_of_wrong_types(kind: type[msgspec.Struct], data: st.DataObject) -> None:
    body = data.draw(st.one_of(st.binary(max_size=60), JSON.map(lambda value: json.dumps(value).encode())))
    with suppress(*REFUSALS):
        assert isinstance(_decoded([body], decompressor_of({}, BOUNDS), kind, reserve_nothing), kind)


def test_the_bounds_of_the_headers_are_kept() -> None:
    with pytest.raises(LimitExceeded):
        check_length({"content-length": "100001"}, BOUNDS)
