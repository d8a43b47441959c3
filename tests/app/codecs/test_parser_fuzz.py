"""Fuzzing of every parser of bodies: the result is documents or a named error, however the body is cut."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import IO, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st
from pyarrow import ipc

from app.codecs.base import Bounds, Reading
from app.codecs.dispatch import FORMATS, check_length, decompressor_of
from app.codecs.json_documents.document import PARTS
from app.codecs.tables import child, helper
from app.codecs.transport.encodings import reserve_nothing
from app.datasets.schemas import LabelsBody
from app.errors import InvalidRequest, UnsupportedMediaType
from app.http.requests import _decoded
from app.inference.service import InferBody
from app.inference.tensors import documents_of
from app.jobs.schemas import JobBody
from app.models.schemas import AliasBody
from app.predictions.service import decode_documents
from core.documents.kinds import NamedRows, Rows, RowsOfKind, TextRows, parts_of
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from tests.app.codecs import encodings
from tests.app.codecs.encodings import as_npy
from tests.app.codecs.tables.workbooks import DATE, XLSX, workbook

BOUNDS = Bounds(body_bytes=100_000, decompressed_bytes=200_000, document_bytes=2_000, documents=500, nonzeros=5_000)
REFUSALS = (InvalidDocuments, LimitExceeded, InvalidRequest, UnsupportedMediaType)
CONTENT_TYPES = {"multipart/form-data": "multipart/form-data; boundary=x"}
"""Content-Type of a media type that needs parameters."""


def npz(**arrays: object) -> bytes:
    return encodings.npz({name: np.asarray(array) for name, array in arrays.items()}, compressed=False)


def parquet(**columns: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def arrow(write: Callable[[io.BytesIO, pa.Schema], Any], **columns: object) -> bytes:
    file, table = io.BytesIO(), pa.table(columns)
    with write(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def tar(**files: str) -> bytes:
    """An archive that ends with the two empty blocks, without padding."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, text in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(text)
            archive.addfile(header, io.BytesIO(text.encode()))
        return file.getvalue() + bytes(1024)


def zipped(**files: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


GOOD: dict[str, list[bytes]] = {
    "application/json": [
        b'{"documents": [{"id": "a", "indices": [0, 7], "values": [1, -2.5e3], "label": "x"}, {"indices": [], '
        b'"label": null}]}',
        b'{"documents": [{"id": "a", "text": "a } \\" { \\u00e9", "label": "x"}, {"text": ""}, {"label": 3, '
        b'"text": "b"}]}',
        b'{"documents": [{"features": {"a}": 1, "b\\"": -2.5e3}, "label": "x"}, {"features": {}}, {"id": "c", '
        b'"features": {"b": 0}}]}',
        b'{"documents": [{"text": "a", "labels": ["x", "y"], "not": ["z"], "votes": {"r": "x", "m": {"y": 0.5}}}, '
        b'{"text": "", "labels": [], "weight": 2}]}',
        b'{"documents": [{"text": "a }", "vector": [1, 0.5]}, {"id": "c", "vector": [0, -2e3], "features": '
        b'{"b{": 0}, "vectors": {"x": [1]}}]}',
    ],
    "application/x-ndjson": [
        b'{"id": "a\\u00e9", "indices": [0, 7], "values": [1.5, 2]}\n{"indices": [3], "label": 4}\n',
        b'{"text": "x y", "label": 4}\n{"text": ""}\n',
        b'{"text": "x", "labels": ["a", "b"], "not": ["c"], "votes": {"r": "a", "m": {"b": 0.5}}}\n'
        b'{"text": "", "weight": 2}\n',
        b'{"features": {"x": 1, "y": 2}}\n{"features": {}}\n',
        b'{"text": "x y"}\n{"vector": [1, 0], "text": "z", "vectors": {"a": [2], "b": [1, 2]}}\n{"vector": '
        b'[0, 3], "text": null}\n',
    ],
    "text/csv": [
        b'id,text,label\r\na,"x, ""y""\r\nz",sport\r\n,\xc3\xa9,\r\n\r\n',
        b"text;more\nx;y\n",
        b'text,labels,not,vote:r,weight\nx,a;b,c,"{""a"": 1}",2\ny,[],,,\n',
    ],
    "text/tab-separated-values": [b'text\tlabel\nx\t"a\tb"\ny\t\n'],
    XLSX: [
        workbook({"S": [["id", "text", "label"], ["a", "x y", "sport"], [None, "\u00e9", None]], "T": []}),
        workbook({"S": [["text", "labels", "vote:r", "weight", "d"], [1, "a;b", '{"a": 1}', 2, (45292, DATE)]]}),
    ],
    "application/vnd.apache.parquet": [
        parquet(id=["a", None], text=["x y", "\u00e9"], label=["sport", ""]),
        parquet(text=["x", "", "y"], label=[3.0, None, -2.0]),
        parquet(**{"text": ["x", "y"], "labels": [["a", "b"], None], "vote:r": ["a", None], "weight": [0.5, None]}),
    ],
    "application/vnd.apache.arrow.stream": [
        arrow(ipc.new_stream, id=[7, 8], text=["x y", "\u00e9"], label=["sport", None]),
        arrow(ipc.new_file, text=pa.array(["x", "", "x"]).dictionary_encode(), label=[3, None, -2]),
        arrow(ipc.new_stream, **{"text": ["x", "y"], "labels": [["a", "b"], None], "vote:r": ["a", None]}),
    ],
    "text/x-svmlight": [b"1 1:0.5 9:2 # words\n0 4:1e-3\n-1\n"],
    "application/x-npz": [
        npz(indptr=[0, 2, 3], indices=[0, 7, 3], data=[1.0, 2.0, 3.0], shape=[2, 9], labels=["x", ""]),
        npz(X=np.eye(3, dtype=np.float32), ids=["a", "b", "c"]),
        npz(X=np.eye(3), ids=[7, 8, 9], labels=[1.0, np.nan, -2.0]),
        npz(X=np.eye(2), indicators=[[1, 0], [1, 1]], classes=["a", "b"], labeled=[True, False], weights=[1, 2.5]),
        npz(X=np.eye(3, dtype=np.float32), text=["a b", "", "c"], labels=["x", "", "y"]),
        npz(indptr=[0, 2, 3], indices=[0, 7, 3], data=[1.0, 2.0, 3.0], shape=[2, 9], X=np.eye(2)),
    ],
    "application/x-npy": [as_npy(np.eye(3)), as_npy(np.ones((2, 3), np.int8, order="F"))],
    "application/zip": [zipped(**{"a/x.txt": "some text", "unlabeled/y.txt": "", "z": "top"})],
    "application/x-tar": [tar(**{"a/x.txt": "some text", "y": ""}), tar(**{f"b/{'n' * 100}": "x"})],
    "application/gzip": [gzip.compress(tar(**{"a/x.txt": "some text", "y": ""}), mtime=0)],
    "multipart/form-data": [
        b'--x\r\nContent-Disposition: form-data; name="file"; '
        b'filename="a.csv"\r\n\r\ntext,label\r\na,b\r\n\r\n--x--\r\n',
        b'--x\r\nContent-Type: application/x-ndjson\r\nContent-Disposition: form-data; name="f"; '
        b'filename=""\r\n\r\n{"text": "a"}\n\r\n--x--',
    ],
}


def parsed(media_type: str, blocks: Sequence[bytes], encoding: str = "identity") -> list[Rows]:
    headers = {"content-type": CONTENT_TYPES.get(media_type, media_type), "content-encoding": encoding}
    return [batch.rows for batch in decode_documents(blocks, headers, BOUNDS)]


def inferred(body: bytes) -> list[Rows]:
    """The documents in the tensors of a body."""
    try:
        given = msgspec.json.decode(body, type=InferBody)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest("inputs", str(error)) from error
    return [rows for rows in documents_of(given.inputs, BOUNDS, reserve_nothing) if rows is not None]


def as_documents(rows: Rows) -> list[Any]:
    """Each document in Python's own types, without parts that are empty: cuts decide whether a batch has them."""
    parts = {name: as_lists(part) for name, part in parts_of(rows).items()}
    return [
        {name: held for name, held in zip(parts, each, strict=True) if held}
        for each in zip(*parts.values(), strict=True)
    ]


def as_lists(rows: RowsOfKind) -> list[Any]:
    """One part of each document in Python's own types."""
    if isinstance(rows, TextRows):
        return list(rows)
    if isinstance(rows, NamedRows):
        names, rows = rows.names, rows.rows
        numbered = [{names[index]: value for index, value in row} for row in as_lists(rows)]
        assert all(len(row) == length for row, length in zip(numbered, np.diff(rows.indptr), strict=True))
        return numbered
    assert np.isfinite(rows.values).all()
    assert (np.diff(rows.indptr) >= 0).all()
    pairs = list(zip(rows.indices.tolist(), rows.values.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in pairwise(rows.indptr.tolist())]


def outcome(act: Callable[[], list[Rows]]) -> tuple[str, list[Any]]:
    """The outcome of a body, the same however it was cut."""
    try:
        found = act()
    except REFUSALS as error:
        return type(error).__name__, []
    return "documents", [document for rows in found for document in as_documents(rows)]


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in pairwise(edges)]


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
    outcome(lambda: parsed("application/x-npz", [npz(**arrays)]))


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
