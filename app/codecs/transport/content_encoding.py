"""``Content-Encoding``: gzip is decompressed as it comes, a block at a time, so that a decompression bomb stops at the
limit.
"""

import zlib
from collections.abc import Iterator
from typing import Protocol

from app.codecs.base import BLOCK_BYTES, Reserve
from app.codecs.faults import refused
from storage.errors import LimitExceeded

_GZIP = 16 + zlib.MAX_WBITS
_FIRST_STEP = 512
"""Bytes of a gzip member that zlib gets first; it then gets twice as many each time.

At the end of a member zlib copies its unused input. That input is never much longer than the member, so many small
members take linear time.
"""


def reserve_nothing(size: int) -> None:
    """Reserve nothing: for a body that is read as a stream."""


class Decompressor(Protocol):
    """Decompresses a body."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes decompress to, in pieces of at most BLOCK_BYTES."""
        ...

    def finish(self) -> None:
        """Check the end of the body; raises InvalidDocuments if it is cut short."""
        ...


class Identity:
    """No encoding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """See Decompressor."""
        yield data

    def finish(self) -> None:
        """See Decompressor."""


class Gunzip:
    """Decompresses one or more gzip members and compares their checksums. Raises LimitExceeded beyond ``most`` bytes.

    ``reserve`` is called with the size of each piece before the piece is yielded.
    """

    def __init__(self, most: int, reserve: Reserve = reserve_nothing) -> None:
        self._most = most
        self._reserve = reserve
        self._size = 0
        self._member = zlib.decompressobj(_GZIP)
        self._started = False
        self._step = _FIRST_STEP

    def feed(self, data: bytes) -> Iterator[bytes]:
        """See Decompressor."""
        view, at, piece = memoryview(data), 0, b""
        # a full piece may leave output inside zlib, even after all input was consumed, unless it was the last one of
        # its member
        while at < len(view) or (len(piece) == BLOCK_BYTES and not self._member.eof):
            if self._member.eof:
                self._member, self._started, self._step = zlib.decompressobj(_GZIP), False, _FIRST_STEP
            part = view[at : at + self._step]
            try:
                piece = self._member.decompress(part, BLOCK_BYTES)
            except zlib.error as error:
                raise refused(f"not gzip, or damaged: {error}") from error
            self._started = True
            self._size += len(piece)
            if self._size > self._most:
                raise LimitExceeded("bytes in the decompressed body", self._most)
            if piece:
                self._reserve(len(piece))
                yield piece
            at += len(part) - len(self._member.unused_data if self._member.eof else self._member.unconsumed_tail)
            self._step = min(2 * self._step, BLOCK_BYTES)

    def finish(self) -> None:
        """See Decompressor."""
        if not self._member.eof:
            raise refused("the gzip stream ends too early" if self._started else "the body is empty, which is not gzip")
