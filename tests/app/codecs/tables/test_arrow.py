"""Tables of Arrow and Parquet: columns by name, labels of every type, files that are none or too much."""

import struct
import sys
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from app.codecs.base import Bounds
from app.codecs.dispatch import body_decoder
from app.errors import UnsupportedMediaType
from core.documents.kinds import TextRows
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from tests.app.codecs.encodings import arrow_file, arrow_stream, parquet

BOUNDS = Bounds(body_bytes=10**7, decompressed_bytes=10**8, document_bytes=10**5, documents=10**6, nonzeros=10**5)
PARQUET, ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"
TABLE = {
    "text": ["late, again", "", "Tor\n🙂"],
    "label": ["sport", None, ""],
    "id": [7, 8, 9],
    "more": [1.5, 2.5, None],
}


def read(
    body: bytes, media_type: str = PARQUET, bounds: Bounds = BOUNDS, **query: str
) -> tuple[list[str], list[Any], list[Any], list[str]]:
    decoder = body_decoder({"content-type": media_type}, bounds, query=query)
    texts: list[str] = []
    labels: list[Any] = []
    ids: list[Any] = []
    for batch in [*decoder.feed(body[:100]), *decoder.feed(body[100:]), *decoder.finish()]:
        assert isinstance(batch.rows, TextRows)
        texts += list(batch.rows)
        labels += batch.labels
        ids += batch.ids or []
    return texts, labels, ids, list(decoder.warnings())


@pytest.mark.parametrize(("media_type", "write"), [(PARQUET, parquet), (ARROW, arrow_stream), (ARROW, arrow_file)])
def test_a_table_is_read_as_any_other(media_type: str, write: Any) -> None:
    texts, labels, ids, warnings = read(write(TABLE), media_type)
    assert (texts, labels, ids) == (TABLE["text"], ["sport", None, None], ["7", "8", "9"])
    assert warnings == ["columns that are kept beside the documents and not learned from: 'more'"]
    named = {"Body": TABLE["text"], "topic": TABLE["label"]}
    assert read(write(named), media_type, text="Body", label="topic")[:3] == (TABLE["text"], ["sport", None, None], [])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pa.array([1, None, 3]), [1, None, 3]),
        (pa.array([1.0, float("nan"), 3.0]), [1, None, 3]),
        (pa.array(["a", None, "b"]).dictionary_encode(), ["a", None, "b"]),
        (pa.array(["a", None, "b"], pa.large_string()), ["a", None, "b"]),
        (pa.nulls(3), [None] * 3),
    ],
)
def test_types_of_labels(labels: Any, expected: list[Any]) -> None:
    for write, media_type in ((parquet, PARQUET), (arrow_stream, ARROW)):
        assert read(write({"text": ["a", "b", "c"], "label": labels}), media_type)[1] == expected


def test_many_rows_and_one_long_text_many_times() -> None:
    """The file has the text once. No batch has more of it than it may."""
    body = parquet({"text": ["x" * 90_000] * 600})
    assert len(body) < 200_000
    decoder = body_decoder({"content-type": PARQUET}, BOUNDS)
    list(decoder.feed(body))
    sizes = [(batch.rows.n_rows, int(batch.rows.indptr[-1] - batch.rows.indptr[0])) for batch in decoder.finish()]
    assert sum(rows for rows, _ in sizes) == 600
    assert max(size for _, size in sizes) <= 1 << 24


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (parquet({"body": ["a"]}), "no column is named 'text'; the first row has 'body'"),
        (parquet({"text": ["a", None]}), "document number 2: text: is null"),
        (parquet({"text": [1]}), "text: is of int64; it must be a column of texts"),
        (parquet({"text": ["a"], "label": [[1]]}), "label: is of list"),
        (parquet({"text": ["a"], "label": [0.5]}), "label: 0.5 is a float with a fraction"),
        (parquet({"text": ["a"], "label": [True]}), "label: is of bool"),
        (b"text,label\na,b\n", "this is no Arrow or Parquet file that can be read, or one cut short"),
        (parquet(TABLE)[:-50], "this is no Arrow or Parquet file that can be read, or one cut short"),
        (b"", "this is no Arrow or Parquet file that can be read, or one cut short"),
    ],
)
def test_what_is_refused(body: bytes, detail: str) -> None:
    with pytest.raises(InvalidDocuments) as refusal:
        read(body)
    assert detail in str(refusal.value)


def test_damaged_streams_are_refused() -> None:
    whole = arrow_stream(TABLE)
    for body in (
        b"",
        b"ARROW1",
        whole[:60],
        b"x" * 100,
        whole[:4] + b"\xf0" + whole[5:],
        whole[:8] + b"\xff" * 40 + whole[48:],
    ):
        with pytest.raises((InvalidDocuments, LimitExceeded)):
            read(body, ARROW)


def test_no_memory_beside_the_body_is_read() -> None:
    """Arrow takes offsets and indices as a stream has them."""
    whole = arrow_stream({"text": ["abcdefg"]})
    assert whole.count(b"\7\0\0\0abcdefg") == 1
    longer = whole.replace(b"\7\0\0\0abcdefg", b"\0\2\0\0abcdefg")
    not_utf8 = whole.replace(b"abcdefg", b"abc\xffefg")
    for body in (longer, not_utf8):
        assert read(whole, ARROW)[0] == ["abcdefg"]
        with pytest.raises(InvalidDocuments):
            read(body, ARROW)


@pytest.mark.parametrize("write", [arrow_stream, arrow_file])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_batches_that_say_too_much(write: Any, compression: str) -> None:
    """Also the dictionaries. The length before each buffer is written over."""
    options = ipc.IpcWriteOptions(compression=compression)
    words = pa.array(["x" * 50_000, "y" * 50_000] * 20)
    for texts, length in ((words, 2_000_000), (words.dictionary_encode(), 100_000)):
        body = write({"text": texts, "label": ["a", None] * 20}, options)
        assert len(body) < 30_000
        assert read(body, ARROW)[0] == words.to_pylist()
        said = struct.pack("<q", length)
        assert said in body
        with pytest.raises(InvalidDocuments, match=r"takes more than 1280 MiB of memory|less than one frame"):
            read(body.replace(said, struct.pack("<q", 1 << 40)), ARROW)


def test_all_that_is_unpacked_is_bounded() -> None:
    table, bounds = {"text": ["x" * 50_000] * 25}, replace(BOUNDS, decompressed_bytes=10**6)
    for body, media_type in (
        (arrow_stream(table, ipc.IpcWriteOptions(compression="zstd")), ARROW),
        (parquet(table, use_dictionary=False, compression="zstd"), PARQUET),
    ):
        assert len(body) < 10_000
        with pytest.raises(LimitExceeded, match="decompressed body"):
            read(body, media_type, bounds)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["NONE", "SNAPPY", "ZSTD", "GZIP"])
def test_pages_of_all_kinds_are_read(version: str, compression: str) -> None:
    columns = {"text": [f"{row} late" * 20 for row in range(3000)], "label": ["a", None, "b"] * 1000, "id": range(3000)}
    body = parquet(
        columns, data_page_version=version, compression=compression, data_page_size=4096, row_group_size=1000
    )
    assert read(body)[0] == columns["text"]


def test_a_page_that_says_too_much() -> None:
    body = parquet({"text": ["x" * 4000]}, compression="ZSTD", use_dictionary=False)
    said, more = b"\x15\xd4\x3e", b"\x15\xfe\xff\xff\xff\x0f"
    assert body.count(said) == 1, "4010 bytes, as Thrift writes it"
    with pytest.raises(InvalidDocuments):
        read(body.replace(said, more))


def test_encodings_that_pyarrow_does_not_read_are_refused() -> None:
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        body = parquet({"text": ["late", "later"]}, use_dictionary=False, column_encoding={"text": encoding})
        with pytest.raises(InvalidDocuments, match=r"can be read.*Not yet implemented"):
            read(body)


def test_nested_columns_are_not_read() -> None:
    texts, _, _, warnings = read(parquet({"text": ["a", "b"], "many": [[1] * 1000, None], "deep": [{"x": [1]}, None]}))
    assert texts == ["a", "b"]
    assert any("many, deep" in warning or "'many', 'deep'" in warning for warning in warnings), warnings


def test_one_long_label_many_times() -> None:
    """It is no label, but that is for the dataset to say; no batch has more of it than a text."""
    body = arrow_stream({"text": ["a"] * 600, "label": pa.array(["x" * 90_000] * 600).dictionary_encode()})
    decoder = body_decoder({"content-type": ARROW}, BOUNDS)
    list(decoder.feed(body))
    assert len(next(decoder.finish()).labels) <= (1 << 24) / 90_000


def test_names_that_are_no_text() -> None:
    for write, media_type in ((parquet, PARQUET), (arrow_stream, ARROW)):
        body = write({"text": ["a"], "more": ["b"]}).replace(b"more", b"mo\xffe")
        with pytest.raises(InvalidDocuments, match="no Arrow or Parquet file"):
            read(body, media_type)


def test_a_text_that_is_too_long() -> None:
    with pytest.raises(LimitExceeded, match="HALFMOON_MAX_DOCUMENT_BYTES"):
        read(parquet({"text": ["x" * 200_000]}))


def test_without_the_extra_the_answer_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnsupportedMediaType, match=r"pip install 'halfmoon\[arrow\]'"):
        read(b"")
