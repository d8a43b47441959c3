"""The first bytes of a text: a byte order mark of UTF-8, as programs on Windows write it, is skipped;

UTF-16 and compressed files are refused.
"""

from collections.abc import Iterator, Sequence

from app.codecs.base import Decoder
from app.codecs.faults import refused
from app.codecs.json.text import BYTE_ORDER_MARK, InvalidJson
from storage.repositories.datasets import Batch

_WIDE = (b"\xff\xfe", b"\xfe\xff")
_ZIP = (
    "this is a zip file: of arrays, it is sent as application/x-npz; if it is a workbook, save the table "
    "as CSV (text/csv)"
)
_COMPRESSED = {b"\x1f\x8b": "gzip is sent with Content-Encoding: gzip", b"PK\x03\x04": _ZIP}
_MARKS = (BYTE_ORDER_MARK, *_WIDE, *_COMPRESSED)


def without_byte_order_mark(text: bytes) -> bytes:
    """The text without its byte order mark.

    Raises InvalidJson for a compressed file, and for UTF-16 and UTF-32, which have another mark or a zero byte in the
    first character.
    """
    for mark, what in _COMPRESSED.items():
        if text.startswith(mark):
            raise InvalidJson(what)
    if text.startswith(_WIDE) or b"\0" in text[:2]:
        raise InvalidJson("the text is in UTF-16 or UTF-32; send it in UTF-8")
    return text.removeprefix(BYTE_ORDER_MARK)


class WithoutByteOrderMark:
    """A Decoder that feeds another one the text without its byte order mark."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._head: bytes | None = b""
        """Bytes so far, until it is known whether they are a mark; then None."""

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        if self._head is not None:
            self._head += data
            if any(mark.startswith(self._head) and mark != self._head for mark in _MARKS):
                return
            try:
                data, self._head = without_byte_order_mark(self._head), None
            except InvalidJson as error:
                raise refused(error.detail) from None
        yield from self._decoder.feed(data)

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if self._head is not None:
            yield from self._decoder.feed(self._head)
        yield from self._decoder.finish()

    def warnings(self) -> Sequence[str]:
        """See Decoder."""
        return self._decoder.warnings()
