"""Answers: in JSON, as most are; their media type by the Accept header (RFC 9110, section 12.5.1); temporary files, for
bodies that are kept until their end and answers that are written whole before they are sent; and tables as CSV and
Parquet, written a block at a time.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula, which may fetch and send what lies beside it.
Texts of strangers must not do so, and ids, labels and names of columns may be theirs, too: in CSV those get an
apostrophe in front, unless the request wants them exact or they are numbers.
"""

import asyncio
import csv
import io
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import IO, Any, Literal, NamedTuple

import msgspec
from fastapi import Request
from pydantic import BaseModel
from starlette.background import BackgroundTask
from starlette.responses import Response

from app.errors import NotAcceptable
from storage.errors import translate_os_errors
from storage.records import MAX_TEXT
from storage.store import Store

_encode = msgspec.json.Encoder().encode


def json_answer(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None, background: BackgroundTask | None = None
) -> Response:
    """An answer in JSON: a schema, or plain values."""
    text = content.model_dump_json() if isinstance(content, BaseModel) else _encode(content)
    return Response(text, status, headers, "application/json", background)


class _MediaRange(NamedTuple):
    """One media range of the header, with its quality value."""

    kind: str
    subtype: str
    quality: float

    def specificity(self, media_type: str) -> int:
        """How specifically the range matches a media type, from 3 (both parts) to 0 (not at all)."""
        kind, _, subtype = media_type.partition("/")
        if (self.kind, self.subtype) == (kind, subtype):
            return 3
        if self.subtype == "*" and self.kind in (kind, "*"):
            return 2 if self.kind == kind else 1
        return 0


def negotiate(request: Request, offered: Sequence[str]) -> str:
    """The offered media type of the highest quality, the first of equals; raises NotAcceptable if the request accepts
    none.
    """
    header = ",".join(request.headers.getlist("accept"))
    ranges = [_range(part) for part in header.split(",") if part.strip()]
    if not ranges:
        return offered[0]
    qualities = {}
    for media_type in offered:
        # the most specific range counts
        specificity, quality = max((each.specificity(media_type), each.quality) for each in ranges)
        qualities[media_type] = quality if specificity else 0.0
    best = max(offered, key=lambda media_type: qualities[media_type])
    if not qualities[best]:
        raise NotAcceptable(f"Accept {header[:MAX_TEXT]!r}: this answer comes as {' or '.join(offered)}")
    return best


def _range(part: str) -> _MediaRange:
    name, *parameters = part.lower().split(";")
    kind, _, subtype = name.strip().partition("/")
    values = dict(parameter.strip().partition("=")[::2] for parameter in parameters)
    try:
        quality = float(values.get("q", "1"))
    except ValueError:
        quality = 0.0
    return _MediaRange(kind, subtype, min(max(quality, 0.0), 1.0) if quality == quality else 0.0)


_BLOCK_BYTES = 1 << 18


@contextmanager
def temporary_file(store: Store) -> Iterator[IO[bytes]]:
    """An unnamed file on the file system of the staging area.

    It disappears when it is closed or the process ends. Raises StoreUnavailable.
    """
    file = _open(store)
    try:
        yield file
    finally:
        # what is still buffered need not reach a disk that is full
        with suppress(OSError):
            file.close()


@translate_os_errors("write", "a file to send")
def written_file(store: Store, write: Callable[[IO[bytes]], None]) -> IO[bytes]:
    """A temporary file that ``write`` has written, for ``iter_file``.

    Raises StoreUnavailable, and what ``write`` raises.
    """
    file = _open(store)
    try:
        write(file)
        file.seek(0)
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    return file


async def iter_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    """The blocks of a file, which is closed at the end, also of a request that is cancelled."""
    try:
        while block := await asyncio.to_thread(file.read, _BLOCK_BYTES):
            yield block
    finally:
        file.close()


@translate_os_errors("make", "a temporary file")
def _open(store: Store) -> IO[bytes]:
    # not in the folder of the system, which may be memory
    folder = store.staging()
    try:
        return tempfile.TemporaryFile(dir=folder)
    finally:
        folder.rmdir()


JSON, NDJSON, HTML = "application/json", "application/x-ndjson", "text/html"
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
EXACT = (
    "In CSV: texts as they are. By default one that begins as a formula does (= + - @, also after spaces, and full "
    "width) gets an apostrophe in front, unless it is a number; so do ids, labels and names of columns."
)
_BLOCK_ROWS = 2000
_FORMULA = re.compile(r"[\s\ufeff\u200b]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?\Z", re.IGNORECASE)

Row = Sequence[Any]


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: Literal["text", "integer", "number", "truth", "texts", "integers"]
    """kind of the cells; the last two are lists"""


def columns_beside(own: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """The columns, then text columns of extra fields of these names; one that is taken already begins with fields."""
    taken = {column.name for column in own}
    return [*own, *(Column(f"fields.{name}" if name in taken else name, "text") for name in names)]


def csv_blocks(columns: Sequence[Column], rows: Iterable[Row], *, exact: bool = False) -> Iterator[bytes]:
    """The table in blocks, the names of its columns first. Memory holds one block."""
    head: list[Row] = [[column.name for column in columns]]
    for block in chain([head], _blocks(rows)):
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows([_cell(value, not exact) for value in row] for row in block)
        yield table.getvalue().encode()


def write_parquet(columns: Sequence[Column], rows: Iterable[Row], file: IO[bytes]) -> None:
    """Write the table as Parquet.

    Memory is that of a block. Raises NotAcceptable where the extra arrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise NotAcceptable("Parquet needs the extra arrow in the gateway: pip install 'halfmoon[arrow]'") from None
    kinds = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    kinds |= {"texts": pa.list_(pa.string()), "integers": pa.list_(pa.int64())}
    schema = pa.schema([(column.name, kinds[column.kind]) for column in columns])
    with ParquetWriter(file, schema) as writer:
        for block in _blocks(rows):
            cells = zip(columns, zip(*block, strict=True), strict=True)
            values = [list(map(_text, each)) if column.kind == "text" else list(each) for column, each in cells]
            writer.write_batch(pa.record_batch(values, schema=schema))


def _blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    source = iter(rows)
    return (list(chain([first], islice(source, _BLOCK_ROWS - 1))) for first in source)


def _cell(value: Any, guard: bool) -> Any:
    if isinstance(value, bool | list | dict):
        value = _encode(value).decode()
    if guard and isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.match(value):
        return f"'{value}"
    return value


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _encode(value).decode()
