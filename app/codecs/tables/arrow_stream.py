"""Sizes of the messages of an Arrow stream, before any of them is read: Arrow unpacks a whole record batch at once,
however large it says to be.

Of the metadata of a message, which are a flatbuffer, this reads the lengths of buffers alone. Arrow checks the rest,
before it unpacks anything. Source:
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc, format/Message.fbs
"""

import struct
from collections.abc import Iterator
from typing import IO

from app.codecs.base import check_limit
from app.codecs.faults import refused
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded

_MAGIC = b"ARROW1\0\0"
_CONTINUATION = 0xFFFFFFFF
_METADATA_BYTES = 1 << 24
_BATCH_BYTES = 1 << 28
_ADVICE = "write it in batches of fewer rows, as by write_table(table, max_chunksize=10000)"
_DICTIONARY, _RECORDS = 2, 3
"""types of messages that have buffers"""


def seek_stream(file: IO[bytes]) -> None:
    """Go to where the stream begins: an Arrow file is a stream between two marks.

    Its footer, which may refer to anything, is not used.
    """
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        file.seek(0)


def check_sizes(file: IO[bytes], most: int) -> None:
    """Raise LimitExceeded for a stream that unpacks to more than ``most`` bytes, or has a batch too large for memory;

    InvalidDocuments for none.
    """
    seek_stream(file)
    total = 0
    try:
        for size in _sizes(file):
            check_limit(size, "bytes in a record batch of Arrow", _BATCH_BYTES, _ADVICE)
            total += size
            check_limit(total, "bytes in the decompressed body", most)
    except struct.error:
        raise broken_file("a message is damaged") from None


def _sizes(file: IO[bytes]) -> Iterator[int]:
    """Bytes that each message takes in memory."""
    while prefix := file.read(8):
        if len(prefix) < 8:
            raise broken_file("it ends too early")
        mark, length = struct.unpack("<II", prefix)
        if mark != _CONTINUATION:
            raise broken_file("it does not begin as a stream of Arrow does, or is older than version 0.15")
        if length == 0:
            return
        check_limit(length, "bytes in the metadata of a message of Arrow", _METADATA_BYTES)
        message = _Flatbuffer(file.read(length))
        body = file.tell()
        yield length + max(message.body_bytes, _unpacked(file, body, message))
        file.seek(body + message.body_bytes)


def _unpacked(file: IO[bytes], body: int, message: "_Flatbuffer") -> int:
    """Bytes of the buffers of a message: each compressed one begins with its length when unpacked, -1 if it is as it
    is.
    """
    size = 0
    for offset, length in message.compressed_buffers():
        if length < 0 or not 0 <= offset <= message.body_bytes - length:
            raise broken_file("a message is damaged")
        if length >= 8:
            file.seek(body + offset)
            (said,) = struct.unpack("<q", file.read(8))
            size += length if said < 0 else said
    return size


class _Flatbuffer:
    """The metadata of a message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        root = self._number("<I", 0)
        kind, header, length = self._field(root, 1), self._field(root, 2), self._field(root, 3)
        self.body_bytes = 0 if length is None else self._number("<q", length)
        """bytes of the body, which follows the metadata"""
        if not 0 <= self.body_bytes <= _BATCH_BYTES:
            raise LimitExceeded("bytes in a record batch of Arrow", _BATCH_BYTES, _ADVICE)
        self._type = 0 if kind is None else self._number("<B", kind)
        self._records = None if header is None else self._follow(header)
        if self._records is not None and self._type == _DICTIONARY:
            values = self._field(self._records, 1)
            self._records = None if values is None else self._follow(values)

    def compressed_buffers(self) -> Iterator[tuple[int, int]]:
        """Offset in the body, and length, of each buffer of records that are compressed."""
        if self._type not in (_DICTIONARY, _RECORDS) or self._records is None or self._field(self._records, 3) is None:
            return
        buffers = self._field(self._records, 2)
        if buffers is not None:
            start = self._follow(buffers)
            yield from struct.iter_unpack("<qq", self._data[start + 4 : start + 4 + 16 * self._number("<I", start)])

    def _field(self, table: int, slot: int) -> int | None:
        """Where a field of a table is, None if it has its default."""
        layout = table - self._number("<i", table)
        at = 4 + 2 * slot
        offset = self._number("<H", layout + at) if at < self._number("<H", layout) else 0
        return table + offset if offset else None

    def _follow(self, at: int) -> int:
        return at + self._number("<I", at)

    def _number(self, kind: str, at: int) -> int:
        if not 0 <= at < len(self._data):
            raise struct.error("an offset leads out of the metadata")
        return int(struct.unpack_from(kind, self._data, at)[0])


def broken_file(detail: str) -> InvalidDocuments:
    """The error for a file of Arrow or Parquet that is damaged."""
    return refused(f"this is no Arrow or Parquet file, or one cut short: {detail}")
