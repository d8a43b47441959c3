"""The parameter ``charset`` of Content-Type: text in another encoding becomes UTF-8."""

import codecs
import re
from collections.abc import Iterator, Sequence

from app.codecs.base import Decoder
from app.codecs.faults import refused
from app.errors import UnsupportedMediaType
from storage.repositories.datasets import Batch

_ENCODINGS = re.compile(
    r"utf-(8|16|32)(-[bl]e|-sig)?|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|shift_jis\w*|gb\w+|big5\w*|euc_\w+"
)
"""Python's names of the encodings of texts; it has others, such as one that unpacks bz2."""


class WithCharset:
    """A Decoder that feeds another one the text in UTF-8."""

    def __init__(self, decoder: Decoder, encoding: str) -> None:
        self._decoder = decoder
        self._encoding = encoding
        self._text = codecs.getincrementaldecoder(encoding)()

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        yield from self._decoder.feed(self._utf8(data, last=False))

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        yield from self._decoder.feed(self._utf8(b"", last=True))
        yield from self._decoder.finish()

    def warnings(self) -> Sequence[str]:
        """See Decoder."""
        return self._decoder.warnings()

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
    return decoder if name in ("utf-8", "utf-8-sig", "ascii") else WithCharset(decoder, name)


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
