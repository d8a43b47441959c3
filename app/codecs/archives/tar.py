"""``application/x-tar`` and ``application/gzip``: text files in folders, read as a stream. tarfile parses the
headers."""

import re
import tarfile
from collections.abc import Callable, Iterator, Sequence

from app.codecs.archives.text_files import TextFiles
from app.codecs.base import Decoder, Format, Reading
from app.codecs.transport.encodings import Filtered, Gunzip, encoding_of
from core.errors import refused
from storage.repositories.datasets import Batch

_BLOCK = tarfile.BLOCKSIZE
_LONGEST_NAME = 64 << 10
"""Bytes of the headers that hold long names."""
_EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE)
_PATH = re.compile(rb"(?:^|\n)\d+ path=([^\n]*)\n")
_NO_TAR = (
    "this is no tar archive; send a compressed table or lines with their own Content-Type and Content-Encoding: gzip"
)
_Member = tuple[tarfile.TarInfo, bool]
"""An entry, and whether its bytes are wanted."""


class TarDecoder(Decoder):
    """Cuts the bytes into headers and files, each as it is whole."""

    def __init__(self, reading: Reading) -> None:
        self._files = TextFiles(reading.bounds, encoding_of(reading.parameters.get("charset")))
        self._rest = bytearray()
        self._member: _Member | None = None
        self._skipped = 0
        """Bytes that are still to be left out."""
        self._name = ""
        """Name of the next file, where a header before it has it."""
        self._begun = self._ended = False

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        if self._ended:
            return
        self._rest += data
        done = 0
        while not self._ended and (end := self._step(done)) is not None:
            done = end
            yield from self._files.batches()
        del self._rest[:done]

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if not self._begun:
            raise refused(_NO_TAR)
        if not self._ended and (self._rest or self._member or self._skipped):
            raise refused("the archive is cut short")
        yield from self._files.batches(last=True)

    def warnings(self) -> Sequence[str]:
        """See Decoder: the files that were left out."""
        return self._files.warnings()

    def _step(self, at: int) -> int | None:
        """Take one piece from this position on, and return its end; None if more bytes are needed."""
        left = len(self._rest) - at
        if self._skipped:
            taken = min(left, self._skipped)
            self._skipped -= taken
            return at + taken if taken else None
        if self._member is None:
            if left < _BLOCK:
                return None
            self._begin(bytes(self._rest[at : at + _BLOCK]))
            return at + _BLOCK
        header, wanted = self._member
        if left < _padded(header.size):
            return None
        content = bytes(self._rest[at : at + header.size])
        self._member = None
        if wanted:
            self._files.add(self._name or header.name, content)
            self._name = ""
        else:
            self._name = _long_name(header, content)
        return at + _padded(header.size)

    def _begin(self, block: bytes) -> None:
        if not block.strip(b"\0"):
            self._ended = self._begun = True
            return
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
        except tarfile.HeaderError as error:
            raise refused(f"the archive is damaged: {error}" if self._begun else _NO_TAR) from None
        self._begun = True
        if header.size < 0:
            raise refused("the archive is damaged: a negative size")
        if header.type in _EXTENDED:
            if header.size > _LONGEST_NAME:
                raise refused(f"a header of the archive has more than {_LONGEST_NAME} bytes")
            self._member = header, False
        elif header.type == tarfile.XGLTYPE:
            self._skipped = _padded(header.size)
        elif header.isdir():
            self._skipped, self._name = 0, ""
        elif self._files.wants(
            self._name or header.name, header.size, plain=header.type in tarfile.REGULAR_TYPES and not header.issparse()
        ):
            self._member = header, True
        else:
            self._skipped, self._name = _padded(header.size) if header.isreg() else 0, ""


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _long_name(header: tarfile.TarInfo, content: bytes) -> str:
    """The name of the next file that an extended header gives; empty if it gives none."""
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return content.rstrip(b"\0").decode(errors="replace")
    found = _PATH.search(content)
    return found[1].decode(errors="replace") if found else ""


def _format(
    media_type: str,
    decoder: Callable[[Reading], Decoder],
    what: str,
    aliases: tuple[str, ...],
    endings: tuple[str, ...],
    *,
    compressed: bool,
) -> Format:
    description = (
        f"{what} of text files. The folder of a file is its label, unless it is called unlabeled; its path is the id."
    )
    schema = {"schema": {"type": "string", "format": "binary", "description": description}}
    return Format(media_type, decoder, schema, compressed, aliases, endings=endings)


TAR = _format("application/x-tar", TarDecoder, "A tar archive", ("application/tar",), ("tar",), compressed=False)
GZIPPED = _format(
    "application/gzip",
    lambda reading: Filtered(Gunzip(reading.bounds.decompressed_bytes, reading.reserve), TarDecoder(reading)),
    "A tar archive, compressed by gzip,",
    ("application/x-gzip", "application/x-gtar", "application/x-compressed-tar"),
    ("tgz", "gz"),
    compressed=True,
)
