"""What the first bytes tell of a text: a byte order mark in UTF-8, as programs on Windows write it, is passed over; UTF-16 and packed files are
refused by name.
"""

from collections.abc import Iterator

from app.codecs.base import Decoder
from app.codecs.documents import refusal
from app.codecs.json_text import MARK, WrongJson
from core.errors import Fault
from workers.repositories.datasets import Batch

_WIDE = (b"\xff\xfe", b"\xfe\xff")
_PACKED = {b"\x1f\x8b": "gzip is sent with Content-Encoding: gzip", b"PK\x03\x04": "a zip file of arrays is sent as application/x-npz"}
_MARKS = (MARK, *_WIDE, *_PACKED)


def unmarked(text: bytes) -> bytes:
    """The text without its mark; raises WrongJson for what is packed or not UTF-8, which has another mark or zeros in its first letter."""
    for mark, what in _PACKED.items():
        if text.startswith(mark):
            raise WrongJson(what)
    if text.startswith(_WIDE) or b"\0" in text[:2]:
        raise WrongJson("the text is in UTF-16 or UTF-32; send it in UTF-8")
    return text.removeprefix(MARK)


class Unmarked:
    """A Decoder that hands the text on to another, but for its mark."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._head: bytes | None = b""
        """what came so far, until it is known whether it is a mark"""

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        if self._head is not None:
            self._head += data
            if any(mark.startswith(self._head) and mark != self._head for mark in _MARKS):
                return
            data, self._head = self._text(self._head), None
        yield from self._decoder.feed(data)

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if self._head is not None:
            yield from self._decoder.feed(self._head)
        yield from self._decoder.finish()

    @staticmethod
    def _text(head: bytes) -> bytes:
        try:
            return unmarked(head)
        except WrongJson as error:
            raise refusal([Fault("", "", error.detail)]) from None
