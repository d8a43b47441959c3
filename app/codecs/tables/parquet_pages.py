"""Sizes of the pages of a Parquet file, before any of them is read: Arrow unpacks a whole page at once, however large
it says to be.

The sums in the footer need not be true, so the header before each page is read, which is a structure of Thrift in its
compact protocol. Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
(PageHeader), THRIFT's thrift-compact-protocol.md
"""

import io
import re
from collections.abc import Iterator
from typing import IO, Any

from app.codecs.base import check_limit
from app.codecs.tables.arrow_stream import broken_file

_PAGE_BYTES = 1 << 28
_ENTRY_BYTES = 16
"""bytes that Arrow takes for an entry of a dictionary"""
_LEAST = 1 << 12
"""bytes that a page counts at least, so that there are not too many"""
_DEEPEST = 4
_OLD_WRITER, _SINCE = re.compile(r"version\s+(\d+)\.(\d+)\.(\d+)"), (1, 2, 9)
"""parquet-mr before this version wrote sizes of columns that are too small, for which Arrow reads beyond them"""
_ADVICE = "write it with smaller pages, as pyarrow does unless it is told otherwise"
_GROWING = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
"""encodings by which some bytes stand for any number of texts of any length"""
_SIZE, _COMPRESSED, _DATA, _DICTIONARY, _DATA_2 = 2, 3, 5, 7, 8
"""fields of a page header"""
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 12
Fields = dict[int, Any]


def check_pages(file: IO[bytes], metadata: Any, most: int) -> None:
    """Raise LimitExceeded for pages that unpack to more than ``most`` bytes together, or one too large for memory;

    InvalidDocuments for none.
    """
    writer = (metadata.created_by or "").lower()
    version = _OLD_WRITER.search(writer)
    if "parquet-mr" in writer and (version is None or tuple(map(int, version.groups())) < _SINCE):
        raise broken_file(
            "it says that parquet-mr wrote it before version 1.2.9, whose files cannot be measured; write it again"
        )
    total = 0
    for page in _pages(file, metadata):
        size = _number(page, _SIZE, -1)
        entries = _number(_fields(page, _DICTIONARY), 1, 0)
        check_limit(max(size, entries * _ENTRY_BYTES), "bytes in a page of Parquet", _PAGE_BYTES, _ADVICE)
        encoding = _number(_fields(page, _DATA), 2, _number(_fields(page, _DATA_2), 4, 0))
        if encoding in _GROWING:
            raise broken_file(
                f"a column has the encoding {_GROWING[encoding]}, which is not read; write it as PLAIN or with a "
                "dictionary"
            )
        if min(size, entries) < 0:
            raise _damaged()
        total += max(size, _LEAST)
        check_limit(total, "bytes in the decompressed body", most)


def _pages(file: IO[bytes], metadata: Any) -> Iterator[Fields]:
    """The headers of all pages, as Arrow finds them."""
    length = file.seek(0, io.SEEK_END)
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            start, first = column.data_page_offset, column.dictionary_page_offset
            position = min(start, first) if first else start
            end = position + column.total_compressed_size
            while position < end:
                file.seek(min(max(0, position), length))
                page = _struct(file)
                yield page
                position = file.tell() + max(0, _number(page, _COMPRESSED, 0))


def _number(fields: Fields, field: int, default: int) -> int:
    found = fields.get(field, default)
    if not isinstance(found, int):
        raise _damaged()
    return found


def _fields(fields: Fields, field: int) -> Fields:
    found = fields.get(field, {})
    if not isinstance(found, dict):
        raise _damaged()
    return found


def _struct(file: IO[bytes], depth: int = 0) -> Fields:
    """The fields of a structure by their numbers, but for texts, which are passed over."""
    found: Fields = {}
    number = 0
    while head := _byte(file):
        number = number + (head >> 4) if head >> 4 else _integer(file)
        kind = head & 15
        if kind in (_I16, _I32, _I64):
            found[number] = _integer(file)
        elif kind == _STRUCT and depth < _DEEPEST:
            found[number] = _struct(file, depth + 1)
        elif kind == _BINARY:
            length = _varint(file)
            if length > _PAGE_BYTES:
                raise _damaged()
            file.seek(length, io.SEEK_CUR)
        elif kind == _BYTE:
            _byte(file)
        elif kind not in (_TRUE, _FALSE):
            raise _damaged()
    return found


def _integer(file: IO[bytes]) -> int:
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)


def _varint(file: IO[bytes]) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = _byte(file)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise _damaged()


def _byte(file: IO[bytes]) -> int:
    found = file.read(1)
    if not found:
        raise broken_file("it ends within a page")
    return found[0]


def _damaged() -> Exception:
    return broken_file("the header of a page is damaged")
