"""``Content-Encoding``: gzip undone as it comes, at most a block at a time, so that a bomb never unfolds."""

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from app.codecs.base import BLOCK_BYTES
from core.errors import Fault, InvalidDocuments
from workers.errors import LimitExceeded

_GZIP = 16 + zlib.MAX_WBITS
_FIRST_STEP = 512
"""Bytes of a member handed to zlib at first, then twice as many each time: at a member's end zlib copies what is left of them, which so is never
much more than the member, and many small members take no more than linear time."""


Held = Callable[[int], None]
"""Counts bytes that are held in memory; may refuse them."""


def free(size: int) -> None:
    """Of bytes that are not held: nothing is counted."""


class Unpacker(Protocol):
    """Undoes a Content-Encoding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes unpack to, in pieces of at most BLOCK_BYTES."""
        ...

    def finish(self) -> None:
        """The body has ended; raises InvalidDocuments if it was cut short."""
        ...


class Identity:
    """No encoding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """See Unpacker."""
        yield data

    def finish(self) -> None:
        """See Unpacker."""


class Gunzip:
    """One or more gzip members, and nothing after them; checksums are compared. Raises LimitExceeded beyond ``most`` bytes.

    ``held`` is told of the bytes of each piece before it is given out.
    """

    def __init__(self, most: int, held: Held = free) -> None:
        self._most = most
        self._held = held
        self._size = 0
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False
        self._step = _FIRST_STEP

    def feed(self, data: bytes) -> Iterator[bytes]:
        """See Unpacker."""
        view, at, piece = memoryview(data), 0, b""
        # zlib may hold back output when a piece is full, though it has taken all input
        while at < len(view) or len(piece) == BLOCK_BYTES:
            if self._member.eof:
                self._member, self._begun, self._step = zlib.decompressobj(_GZIP), False, _FIRST_STEP
            part = view[at : at + self._step]
            try:
                piece = self._member.decompress(part, BLOCK_BYTES)
            except zlib.error as error:
                raise _broken(f"not gzip, or damaged: {error}") from error
            self._begun = True
            self._size += len(piece)
            if self._size > self._most:
                raise LimitExceeded("bytes in the unpacked body", self._most)
            if piece:
                self._held(len(piece))
                yield piece
            at += len(part) - len(self._member.unused_data if self._member.eof else self._member.unconsumed_tail)
            self._step = min(2 * self._step, BLOCK_BYTES)

    def finish(self) -> None:
        """See Unpacker."""
        if not self._member.eof:
            raise _broken("the gzip stream ends too early" if self._begun else "the body is empty, which is not gzip")


def _broken(detail: str) -> InvalidDocuments:
    return InvalidDocuments(detail, [Fault("", "", detail)])
