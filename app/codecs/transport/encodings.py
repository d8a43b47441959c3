"""Filters between the bytes of a body and its decoder: gzip, byte order marks, encodings of text.

gzip is decompressed as it comes, a block at a time, so that a decompression bomb stops at the limit. A byte order mark
of UTF-8, as programs on Windows write it, is skipped; UTF-16 and compressed files are refused. Text in the encoding
that the parameter ``charset`` of Content-Type names becomes UTF-8."""

import codecs
import re
import zlib
from collections.abc import Iterator, Sequence

from app.codecs.base import BLOCK_BYTES, Decoder, Reserve, check_limit, in_blocks
from app.codecs.json.text import BYTE_ORDER_MARK, InvalidJson
from app.errors import UnsupportedMediaType
from core.errors import refused
from storage.repositories.datasets import Batch

_GZIP = 16 + zlib.MAX_WBITS
_FIRST_STEP = 512
"""Bytes of a gzip member that zlib gets first; it then gets twice as many each time.

At the end of a member zlib copies its unused input. That input is never much longer than the member, so many small
members take linear time.
"""
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_ZIP = (
    "this is a zip file: of arrays, it is sent as application/x-npz; if it is a workbook, send it under its name "
    "that ends in .xlsx, or save the table as CSV (text/csv)"
)
_COMPRESSED = {b"\x1f\x8b": "gzip is sent with Content-Encoding: gzip", b"PK\x03\x04": _ZIP}
_MARKS = (BYTE_ORDER_MARK, *_WIDE, *_COMPRESSED)
_MARK_BYTES = max(map(len, _MARKS))
_FIRST_BYTES = 2
"""Bytes of the first character in UTF-16, of which one is zero."""
_ENCODINGS = re.compile(
    r"utf-(8|16|32)(-[bl]e|-sig)?|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|shift_jis\w*|gb\w+|big5\w*|euc_\w+"
)
"""Python's names of the encodings of texts; it has others, such as one that unpacks bz2."""


def reserve_nothing(size: int) -> None:
    """Reserve nothing: for a body that is read as a stream."""


class Filter:
    """Turns the bytes of a body into bytes for its decoder. This one leaves them as they are."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Turn the next bytes into pieces of at most BLOCK_BYTES, if ``data`` has no more."""
        return iter((data,))

    def finish(self) -> Iterator[bytes]:
        """The last pieces, after the end of the body; raises InvalidDocuments if it is cut short."""
        return iter(())


class Filtered(Decoder):
    """A decoder that passes the bytes of a body through a filter to another decoder."""

    def __init__(self, filter: Filter, decoder: Decoder) -> None:
        self._filter = filter
        self._decoder = decoder

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        for piece in self._filter.feed(data):
            yield from self._decoder.feed(piece)

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        for piece in self._filter.finish():
            yield from self._decoder.feed(piece)
        yield from self._decoder.finish()

    def warnings(self) -> Sequence[str]:
        """See Decoder."""
        return self._decoder.warnings()


def filtered(blocks: list[bytes], filter: Filter) -> memoryview:
    """The whole of a body after a filter, which gets it a block at a time.

    Blocks are dropped from the list as they are read: of a large body there is never a second copy.
    """
    whole = bytearray()
    while blocks:
        for block in in_blocks(blocks.pop(0)):
            for piece in filter.feed(block):
                whole += piece
    for piece in filter.finish():
        whole += piece
    return memoryview(whole)


class Gunzip(Filter):
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
        """See Filter."""
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
            check_limit(self._size, "bytes in the decompressed body", self._most)
            if piece:
                self._reserve(len(piece))
                yield piece
            at += len(part) - len(self._member.unused_data if self._member.eof else self._member.unconsumed_tail)
            self._step = min(2 * self._step, BLOCK_BYTES)

    def finish(self) -> Iterator[bytes]:
        """See Filter."""
        if not self._member.eof:
            raise refused("the gzip stream ends too early" if self._started else "the body is empty, which is not gzip")
        return iter(())


def without_byte_order_mark(text: memoryview) -> memoryview:
    """The text without its byte order mark.

    Raises InvalidJson for a compressed file, and for UTF-16 and UTF-32, which have another mark or a zero byte in the
    first character.
    """
    head = bytes(text[:_MARK_BYTES])
    for mark, what in _COMPRESSED.items():
        if head.startswith(mark):
            raise InvalidJson(what)
    if head.startswith(_WIDE) or b"\0" in head[:_FIRST_BYTES]:
        raise InvalidJson("the text is in UTF-16 or UTF-32; send it in UTF-8")
    return text[len(BYTE_ORDER_MARK) :] if head.startswith(BYTE_ORDER_MARK) else text


class WithoutByteOrderMark(Filter):
    """Drops the byte order mark of a text."""

    def __init__(self) -> None:
        self._head: bytes | None = b""
        """Bytes so far, until it is known whether they are a mark; then None."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """See Filter."""
        if self._head is not None:
            self._head += data
            if len(self._head) < _FIRST_BYTES or any(
                mark.startswith(self._head) and mark != self._head for mark in _MARKS
            ):
                return
            try:
                data, self._head = bytes(without_byte_order_mark(memoryview(self._head))), None
            except InvalidJson as error:
                raise refused(error.detail) from None
        yield data

    def finish(self) -> Iterator[bytes]:
        """See Filter."""
        return iter(() if self._head is None else (self._head,))


class ToUtf8(Filter):
    """Turns text of another encoding into UTF-8."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._text = codecs.getincrementaldecoder(encoding)()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """See Filter."""
        yield self._utf8(data, last=False)

    def finish(self) -> Iterator[bytes]:
        """See Filter."""
        yield self._utf8(b"", last=True)

    def _utf8(self, data: bytes, *, last: bool) -> bytes:
        try:
            return self._text.decode(data, last).encode()
        except UnicodeError as error:
            raise refused(f"the text is not in {self._encoding}, as charset says: {error}"[:400]) from None


def with_charset(decoder: Decoder, charset: str | None) -> Decoder:
    """The decoder for text in this encoding, by default UTF-8; raises UnsupportedMediaType for an encoding that is not
    known.
    """
    name = encoding_of(charset)
    return decoder if name in ("utf-8", "utf-8-sig", "ascii") else Filtered(ToUtf8(name), decoder)


def encoding_of(charset: str | None) -> str:
    """Python's name of an encoding of texts, by default UTF-8; raises UnsupportedMediaType for one that is not
    known."""
    try:
        name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        name = ""
    if not _ENCODINGS.fullmatch(name):
        raise UnsupportedMediaType(
            f"charset {(charset or '')[:64]!r}", "text comes in UTF-8, or in an encoding such as windows-1252 or utf-16"
        )
    return name
