"""No body makes its decoder work more than in proportion to its bytes, in any dimension of its format.

Each body of a dimension is decoded once at a size, and eight times at an eighth of it. Work in proportion takes the
same processor time for both, work quadratic in the dimension eight times as much. Both bodies are read in the same way:
JSON of more than ``BLOCK_BYTES`` is read in pieces.
"""

import gzip
import io
import json
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import thread_time

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from app.codecs.base import Bounds, Reading, in_blocks
from app.codecs.dispatch import FORMATS, decompressor_of
from app.codecs.json_documents.ndjson import NdjsonDecoder
from app.codecs.tables.arrow_rows import read_rows
from app.codecs.transport.encodings import reserve_nothing
from app.datasets.schemas import LabelsBody
from app.errors import InvalidRequest
from app.http.requests import _decoded
from app.inference.tensors import documents_of
from app.jobs.schemas import JobBody
from app.predictions.service import decode_documents
from core.errors import MAX_FAULTS, InvalidDocuments
from storage.errors import LimitExceeded
from storage.repositories.datasets.files import ids
from tests.app.codecs.encodings import as_npy, npz, tar_of, zip_of
from tests.app.codecs.good_bodies import CONTENT_TYPES
from tests.app.codecs.tables.workbooks import XLSX

BOUNDS = Bounds(1 << 26, 1 << 26, 1 << 24, 1 << 20, 1 << 22)
REFUSALS = (InvalidDocuments, LimitExceeded, InvalidRequest)
TIMES, MOST, ATTEMPTS = 8, 3.0, 5
"""How much larger the larger body is, how much longer it may take than as many smaller ones, how often both are tried.
"""
ENOUGH_SECONDS = 0.01
"""Seconds of a processor below which times are not compared."""
Make = Callable[[int], bytes]


def csv(*lines: str) -> bytes:
    return "\n".join(lines).encode()


def numbered(n: int, form: str, between: str = ",") -> str:
    return between.join(form % number for number in range(n))


def documents(text: str) -> bytes:
    return f'{{"documents":[{text}]}}'.encode()


def form_parts(n: int, part: str) -> bytes:
    return "".join(f"--x\r\n{part}\r\n\r\n" for _ in range(n)).encode() + b"--x--\r\n"


BODIES: dict[str, dict[str, tuple[int, Make]]] = {
    "text/csv": {
        "columns of one name": (4_000, lambda n: csv("text," + "a," * n, "x," + "1," * n)),
        "columns": (4_000, lambda n: csv("text," + numbered(n, "c%d"), "x," + "1," * (n - 1) + "1")),
        "columns of one name, numbered": (2_000, lambda n: csv("text," + numbered(n, "a.%d") + ",a" * n)),
        "columns named almost label": (4_000, lambda n: csv("text," + numbered(n, "label%d"))),
        "columns without a text": (4_000, lambda n: csv(numbered(n, "tex%d"))),
        "a long name": (200_000, lambda n: csv("text," + "n" * n, "x,1")),
        "rows": (5_000, lambda n: csv("text,label", *["x y,a"] * n)),
        "rows of another width": (20_000, lambda n: csv("text,label", *["x"] * n)),
        "empty lines": (100_000, lambda n: csv("text,label", *[""] * n, "x,a")),
        "line ends in quotes": (100_000, lambda n: csv("text,label", '"' + "\n" * n + '",a')),
        "doubled quotes": (100_000, lambda n: csv("text,label", '"' + '""' * n + '",a')),
        "a quote that is never closed": (200_000, lambda n: csv("text,label", '"' + "x\n" * n)),
        "quotes in turn": (10_000, lambda n: csv("text,label", *['"x\n",a'] * n)),
        "a row": (250_000, lambda n: csv("text,label", "x" * n + ",a")),
        "labels of a cell": (20_000, lambda n: csv("text,labels", "x," + numbered(n, "l%d", ";"))),
        "voters": (4_000, lambda n: csv("text," + numbered(n, "vote:v%d"), "x," + numbered(n, "c%d"))),
        "votes that are objects": (5_000, lambda n: csv("text,vote:v", *['x,"{""a"": 1}"'] * n)),
        "weights": (10_000, lambda n: csv("text,weight", *["x,1"] * n)),
    },
    "text/tab-separated-values": {
        "columns of one name": (4_000, lambda n: csv("text\t" + "a\t" * n, "x\t" + "\t" * n))
    },
    "application/json": {
        "documents": (3_000, lambda n: documents('{"text":"x y"},' * n + '{"text":"x"}')),
        "documents of nothing": (20_000, lambda n: documents("{}," * n + "{}")),
        "values": (20_000, lambda n: documents('{"indices":[' + numbered(n, "%d") + "]}")),
        "unsorted values": (20_000, lambda n: documents('{"indices":[' + numbered(n, str(n) + "%d") + ",0]}")),
        "one index again": (20_000, lambda n: documents('{"indices":[' + "7," * n + "7]}")),
        "features": (5_000, lambda n: documents('{"features":{' + numbered(n, '"f%d":1') + "}}")),
        "one feature again": (10_000, lambda n: documents('{"features":{' + '"f":1,' * n + '"f":1}}')),
        "features of many documents": (2_000, lambda n: documents(numbered(n, '{"features":{"f%d":1}}'))),
        "vectors": (3_000, lambda n: documents('{"text":"","vectors":{' + numbered(n, '"v%d":[1]') + "}}")),
        "unknown fields": (30_000, lambda n: documents("{" + numbered(n, '"u%d":1') + "}")),
        "one field again": (25_000, lambda n: documents("{" + '"text":"x",' * n + '"text":"x"}')),
        "depth": (20_000, lambda n: documents('{"a":' * n + "0" + "}" * n)),
        "depth of lists": (50_000, lambda n: documents("[" * n + "]" * n)),
        "depth without an end": (50_000, lambda n: b'{"documents":[' + b"[" * n),
        "fields before the documents": (5_000, lambda n: ("{" + numbered(n, '"u%d":1') + ',"documents":[]}').encode()),
        "space": (500_000, lambda n: b" " * n + documents('{"text":"x"}')),
        "escapes": (150_000, lambda n: documents('{"text":"' + "\\\\" * n + '"}')),
        "one id": (5_000, lambda n: documents('{"id":"x","text":"y"},' * n + '{"text":"x"}')),
        "a long id": (300_000, lambda n: documents('{"id":"' + "x" * n + '","text":"y"}')),
        "labels": (3_000, lambda n: documents(numbered(n, '{"text":"x","label":"l%d"}'))),
        "a long number": (100_000, lambda n: documents('{"indices":[' + "1" * n + "]}")),
        "labels of a document": (20_000, lambda n: documents('{"text":"","labels":[' + numbered(n, "%d") + "]}")),
        "one label again": (20_000, lambda n: documents('{"text":"","not":[' + "7," * n + "7]}")),
        "voters": (5_000, lambda n: documents('{"text":"","votes":{' + numbered(n, '"v%d":1') + "}}")),
        "one voter again": (10_000, lambda n: documents('{"text":"","votes":{' + '"v":1,' * n + '"v":1}}')),
        "classes of a vote": (5_000, lambda n: documents('{"text":"","votes":{"v":{' + numbered(n, '"c%d":1') + "}}}")),
    },
    "application/x-ndjson": {
        "lines": (3_000, lambda n: b'{"text":"x y"}\n' * n),
        "empty lines": (100_000, lambda n: b"\n" * n + b'{"text":"x y"}\n'),
        "wrong lines": (20_000, lambda n: b"{}\n" * n),
        "a line": (500_000, lambda n: b'{"text":"' + b"x" * n + b'"}\n'),
        "depth": (50_000, lambda n: b'{"text":' + b"[" * n + b"]" * n + b"}\n"),
    },
    "text/x-svmlight": {
        "lines": (5_000, lambda n: b"1 1:1 2:2\n" * n),
        "features": (10_000, lambda n: b"1 " + numbered(n, "%d:1", " ").encode()[4:] + b"\n"),
        "features in disorder": (5_000, lambda n: b"1 " + " ".join(f"{n - k}:1" for k in range(n)).encode() + b"\n"),
        "one feature again": (10_000, lambda n: b"1 " + b"7:1 " * n + b"\n"),
        "comments": (10_000, lambda n: b"1 1:1 #" + b"#" * n + b"\n#" * n),
        "groups": (5_000, lambda n: b"1 " + b"qid:1 " * n + b"\n"),
        "empty lines": (500_000, lambda n: b"1 1:1\n" + b" \n" * n + b"1 1:1\n"),
        "space": (100_000, lambda n: b"1" + b" " * n + b"1:1\n"),
        "labels that are words": (5_000, lambda n: b"a 1:1\n" * n),
    },
    "application/x-npz": {
        "rows": (50_000, lambda n: npz({"X": np.ones((n, 2), np.float32)})),
        "columns": (100_000, lambda n: npz({"X": np.ones((2, n), np.float32)})),
        "ids": (10_000, lambda n: npz({"X": np.ones((n, 1)), "ids": [f"i{k}" for k in range(n)]})),
        "labels": (
            10_000,
            lambda n: npz({"X": np.ones((n, 1)), "labels": [f"l{k}" for k in range(n)]}),
        ),
        "texts": (5_000, lambda n: npz({"text": [f"x {k}" for k in range(n)]})),
        "indicators": (
            200,
            lambda n: npz({"X": np.ones((n, 1)), "indicators": np.ones((n, 50), bool), "classes": range(50)}),
        ),
        "members": (200, lambda n: zip_of_names(n, "m%d.npy")),
        "columns of Fortran's order": (
            20_000,
            lambda n: npz({"X": np.ones((4, n), np.float32, order="F")}),
        ),
        "values": (
            50_000,
            lambda n: npz({"indptr": [0, n], "indices": np.arange(n), "data": np.ones(n), "shape": [1, n]}),
        ),
    },
    "application/x-npy": {"rows": (50_000, lambda n: as_npy(np.ones((n, 2), np.float32)))},
    "application/zip": {
        "files": (300, lambda n: zip_of_names(n, "a/f%d.txt")),
        "files of one name": (300, lambda n: zip_of_names(n, "a/f.txt")),
        "folders": (300, lambda n: zip_of_names(n, "d%d/f.txt")),
        "depth of a name": (4_000, lambda n: zip_of({"d/" * min(n, 30_000) + "f.txt": b"x"})),
        "a file": (300_000, lambda n: zip_of({"a/f.txt": b"x" * n})),
    },
    "application/x-tar": {
        "files": (1_000, lambda n: tar_of({f"a/f{k}": b"x" for k in range(n)})),
        "folders": (1_000, lambda n: tar_of({f"d{k}/f": b"x" for k in range(n)})),
        "a long name": (100_000, lambda n: tar_of({"n" * n: b"x"})),
        "depth of a name": (50_000, lambda n: tar_of({"d/" * n + "f": b"x"})),
        "a file": (500_000, lambda n: tar_of({"a/f": b"x" * n})),
        "empty blocks": (2_000, lambda n: tar_of({"a/f": b"x"})[:-1024] + bytes(512 * n)),
    },
    "application/gzip": {
        "files": (1_000, lambda n: gzip.compress(tar_of({f"a/f{k}": b"x" for k in range(n)}))),
        "members": (2_000, lambda n: gzip.compress(b"") * n),
    },
    "multipart/form-data": {
        "parts": (2_000, lambda n: form_parts(n, 'Content-Disposition: form-data; name="a"')),
        "files": (2_000, lambda n: form_parts(n, 'Content-Disposition: form-data; name="f"; filename="a.csv"')),
        "headers": (20_000, lambda n: form_parts(1, "a: b\r\n" * n)),
        "a header": (200_000, lambda n: form_parts(1, "a: " + "b" * n)),
        "almost boundaries": (20_000, lambda n: a_form("text\n" + "--\r\n--" * n)),
        "line ends": (20_000, lambda n: a_form("text\n" + "\r\n" * n)),
        "a start without a boundary": (200_000, lambda n: b"\r\n--" * n),
    },
}


def a_form(content: str) -> bytes:
    head = '--x\r\nContent-Disposition: form-data; name="f"; filename="a.csv"\r\n\r\n'
    return f"{head}{content}\r\n--x--\r\n".encode()


def zip_of_names(n: int, form: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings(action="ignore"):
        for number in range(n):
            archive.writestr(zipfile.ZipInfo(form % number if "%" in form else form), "x")
    return file.getvalue()


def decode(media_type: str, body: bytes) -> None:
    headers = {"content-type": CONTENT_TYPES.get(media_type, media_type)}
    for _ in decode_documents(in_blocks(body), headers, BOUNDS):
        pass


def seconds(act: Callable[[bytes], object], body: bytes, times: int) -> float:
    """Processor time of the thread for one body so many times, refused or not."""
    start = thread_time()
    for _ in range(times):
        with suppress(*REFUSALS):
            act(body)
    return thread_time() - start


def check_linear(act: Callable[[bytes], object], make: Make, size: int) -> None:
    """Other processes may spoil the times, so one good ratio of some suffices: quadratic work never has one."""
    small, large = make(size), make(TIMES * size)
    ratios = []
    for _ in range(ATTEMPTS):
        ratios.append(seconds(act, large, 1) / max(seconds(act, small, TIMES), ENOUGH_SECONDS))
        if ratios[-1] <= MOST:
            return
    pytest.fail(f"{TIMES} times the size takes {TIMES * min(ratios):.0f} times the time")


def a_parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=max(1, len(table) // 16))
    return file.getvalue()


def a_stream(table: pa.Table) -> bytes:
    file = io.BytesIO()
    with ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, len(table) // 16))
    return file.getvalue()


TABLES: dict[str, tuple[int, Callable[[int], pa.Table]]] = {
    "columns": (100, lambda n: pa.table({"text": ["x"], **{f"c{k}": [1] for k in range(n)}})),
    "columns of one name": (100, lambda n: pa.table([["x"], *[[1]] * n], ["text", *["c"] * n])),
    "columns of lists": (100, lambda n: pa.table({"text": ["x"], **{f"c{k}": [[1]] for k in range(n)}})),
    "rows": (5_000, lambda n: pa.table({"text": ["x y"] * n, "label": ["a"] * n})),
    "texts": (1_000, lambda n: pa.table({"text": [f"text {k}" * 20 for k in range(n)]})),
    "a text": (100_000, lambda n: pa.table({"text": ["x" * n]})),
}


def test_empty_lines_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 MB of gzip hold 16 GiB of them."""
    monkeypatch.setattr(NdjsonDecoder, "one_by_one", pytest.fail)
    assert list(NdjsonDecoder(Reading(BOUNDS)).feed(b"\n \r\n" * 1000)) == []


def test_every_format_is_here() -> None:
    in_child = {"application/vnd.apache.parquet", "application/vnd.apache.arrow.stream", XLSX}
    assert BODIES.keys() == FORMATS.keys() - in_child


@pytest.mark.parametrize("dimension", TABLES)
@pytest.mark.parametrize("write", [a_parquet, a_stream])
def test_tables_are_read_in_proportion(dimension: str, write: Callable[..., bytes]) -> None:
    size, make = TABLES[dimension]

    def act(body: bytes) -> None:
        for _ in read_rows(io.BytesIO(body), "parquet" if write is a_parquet else "stream", Reading(BOUNDS)):
            pass

    check_linear(act, lambda n: write(make(n)), size)


@pytest.mark.parametrize(("media_type", "dimension"), [(each, name) for each in BODIES for name in BODIES[each]])
def test_documents_are_decoded_in_proportion(media_type: str, dimension: str) -> None:
    size, make = BODIES[media_type][dimension]
    check_linear(lambda body: decode(media_type, body), make, size)


TENSORS: dict[str, tuple[int, Make]] = {
    "inputs": (
        5_000,
        lambda n: b"[" + tensor("a", [1], "FP32", [1])[1:-1] * n + b"]",
    ),
    "dimensions": (50_000, lambda n: tensor("X", [1] * n, "FP32", [1])),
    "large dimensions": (2_000, lambda n: tensor("X", [10**18] * n, "FP32", [1])),
    "rows": (5_000, lambda n: tensor("X", [n, 2], "FP32", [[1, 2]] * n)),
    "columns": (20_000, lambda n: tensor("X", [1, n], "FP32", [1] * n)),
    "strings": (5_000, lambda n: tensor("text", [n], "BYTES", ["x"] * n)),
    "a string": (500_000, lambda n: tensor("text", [1], "BYTES", ["x" * n])),
    "depth": (20_000, lambda n: b'[{"name":"X","shape":[1,1],"datatype":"FP32","data":' + b"[" * n + b"]" * n + b"}]"),
    "parameters": (
        5_000,
        lambda n: (
            ('[{"name":"X","shape":[1,1],"datatype":"FP32","data":[1],"parameters":{' + numbered(n, '"p%d":1')).encode()
            + b"}}]"
        ),
    ),
}


def tensor(name: str, shape: list[int], datatype: str, data: object) -> bytes:
    return json.dumps([{"name": name, "shape": shape, "datatype": datatype, "data": data}]).encode()


@pytest.mark.parametrize("dimension", TENSORS)
def test_tensors_are_decoded_in_proportion(dimension: str) -> None:
    size, make = TENSORS[dimension]
    check_linear(lambda body: list(documents_of(msgspec.Raw(body), BOUNDS, reserve_nothing)), make, size)


STRUCTS: dict[str, tuple[type[msgspec.Struct], int, Make]] = {
    "labels": (LabelsBody, 5_000, lambda n: b'{"labels":{' + numbered(n, '"i%d":"a"').encode() + b"}}"),
    "one id again": (LabelsBody, 5_000, lambda n: b'{"labels":{' + b'"i":"a",' * n + b'"i":"a"}}'),
    "unknown fields": (JobBody, 30_000, lambda n: b"{" + numbered(n, '"u%d":0').encode() + b"}"),
    "one field again": (JobBody, 25_000, lambda n: b"{" + b'"model":"m",' * n + b'"model":"m"}'),
    "options": (JobBody, 5_000, lambda n: b'{"model":"m","options":{' + numbered(n, '"o%d":0').encode() + b"}}"),
    "depth": (JobBody, 20_000, lambda n: b'{"options":' + b'{"a":' * n + b"0" + b"}" * n + b"}"),
    "escapes in a name": (JobBody, 150_000, lambda n: b'{"' + b"\\\\" * n + b'":0}'),
}


@pytest.mark.parametrize("dimension", STRUCTS)
def test_requests_are_decoded_in_proportion(dimension: str) -> None:
    kind, size, make = STRUCTS[dimension]
    check_linear(lambda body: _decoded([body], decompressor_of({}, BOUNDS), kind, reserve_nothing), make, size)


def test_ids_are_compared_in_proportion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_COMPARED", 1 << 8)  # 256 parts: a byte holds their numbers
    act = lambda body: ids._repeated(np.frombuffer(body, np.int64), tmp_path)  # noqa: E731
    assert ids._repeated(np.full(1 << 15, -1), tmp_path).tolist() == [[k, k - 1] for k in range(1, MAX_FAULTS + 1)]
    check_linear(act, lambda n: np.random.default_rng(n).bytes(8 * n), 1 << 15)


def test_that_the_check_can_fail() -> None:
    with pytest.raises(pytest.fail.Exception, match="times the time"):
        check_linear(lambda body: [body.count(b"y", at) for at in range(0, len(body), 10)], lambda n: b"x" * n, 20_000)
