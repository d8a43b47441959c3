"""Answers as tables: CSV and Parquet, written a block at a time.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula, which may fetch and send what lies beside it.
Texts of strangers must not do so, and ids, labels and names of columns may be theirs, too: in CSV those get an
apostrophe in front, unless the request wants them exact or they are numbers.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any, Literal, NamedTuple

import msgspec

from app.errors import NotAcceptable

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
EXACT = (
    "In CSV: texts as they are. By default one that begins as a formula does (= + - @, also after spaces, and full "
    "width) gets an apostrophe in front, unless it is a number; so do ids, labels and names of columns."
)
_BLOCK_ROWS = 2000
_FORMULA = re.compile(r"[\s\ufeff\u200b]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?\Z", re.IGNORECASE)
_json = msgspec.json.Encoder().encode

Row = Sequence[Any]


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: Literal["text", "integer", "number", "truth", "texts", "integers"]
    """kind of the cells; the last two are lists"""


def columns_beside(own: Sequence[Column], names: Sequence[str], prefix: str) -> list[Column]:
    """The columns, then text columns of the ``names``. A name that is taken already gets the prefix."""
    taken = {column.name for column in own}
    return [*own, *(Column(prefix + name if name in taken else name, "text") for name in names)]


def csv_blocks(columns: Sequence[Column], rows: Iterable[Row], *, exact: bool = False) -> Iterator[bytes]:
    """The table in blocks, the names of its columns first. Memory holds one block."""
    head: list[Row] = [[column.name for column in columns]]
    for block in chain([head], _blocks(rows)):
        yield _lines([[_cell(value, not exact) for value in row] for row in block])


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


def _lines(rows: Iterable[Row]) -> bytes:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue().encode()


def _cell(value: Any, guard: bool) -> Any:
    if isinstance(value, bool | list | dict):
        value = _json(value).decode()
    if guard and isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.match(value):
        return f"'{value}"
    return value


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _json(value).decode()
