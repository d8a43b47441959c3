"""Bodies that are read from their end, as files; zip files among them."""

import errno
import io
import struct
import tempfile
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import IO, Any

from app.codecs.base import Decoder, Reading
from core.errors import refused
from storage.repositories.datasets import Batch

_ZIP64_BYTES = 1 << 32
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, UnicodeError),
    *(EOFError, NotImplementedError, OverflowError, RuntimeError),
)
"""Errors that zipfile raises on a damaged file, beside an OSError for an offset that the file does not have."""


class BlockFile(io.RawIOBase):
    """Blocks of bytes as one seekable file, without a copy of the whole."""

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self._blocks = blocks
        self._ends = list(accumulate(map(len, blocks)))
        self._at = 0

    def readable(self) -> bool:
        """See IOBase: True."""
        return True

    def seekable(self) -> bool:
        """See IOBase: True."""
        return True

    def tell(self) -> int:
        """See IOBase."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See IOBase."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ends[-1] if self._ends else 0}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """See RawIOBase. Reads the whole size, unless the end comes before."""
        block, parts, missing = bisect_right(self._ends, self._at), [], size if size >= 0 else (self._ends or [0])[-1]
        while missing > 0 and block < len(self._blocks):
            begin = self._at - (self._ends[block] - len(self._blocks[block]))
            part = memoryview(self._blocks[block])[begin : begin + missing]  # joining copies it, which is enough
            parts.append(part)
            self._at += len(part)
            missing -= len(part)
            block += 1
        return b"".join(parts)


class WholeBodyDecoder(Decoder):
    """A decoder of a format that is read from its end: the body is stored until then.

    It is stored in the file that ``spool`` opens or, without one, in memory.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._spool = reading.spool()
        self._blocks: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        if self._spool is None:
            self._blocks.append(data)
        else:
            self._spool.write(data)
        return iter(())

    def body(self) -> Any:
        """The body as a file, from its beginning."""
        found: Any = BlockFile(self._blocks) if self._spool is None else self._spool
        found.seek(0)
        return found

    def descriptor_file(self) -> IO[bytes]:
        """The body as a file that another process can read, from its beginning."""
        if self._spool is None:
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115
            self._spool.writelines(self._blocks)
            self._blocks.clear()
        self._spool.seek(0)
        return self._spool


@contextmanager
def zip_errors(what: str) -> Iterator[None]:
    """Errors of a damaged zip file inside the block become InvalidDocuments with this prefix of the message."""
    try:
        yield
    except (*_BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise refused(f"{what}: {error}") from error


def check_directory(spool: IO[bytes], most: int, too_large: str) -> None:
    """Refuse a directory of more bytes before zipfile reads it into memory.

    Only a file beyond 4 GiB needs a zip64 directory.
    """
    size = spool.seek(0, 2)
    tail_bytes = min(size, 22 + (1 << 16))
    spool.seek(size - tail_bytes)
    tail = spool.read(tail_bytes)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(tail):
        raise refused("not a zip file, or cut short")
    zip64 = b"PK\x06\x07" in tail[max(0, end - 20) : end]
    if size < _ZIP64_BYTES and (zip64 or int.from_bytes(tail[end + 12 : end + 16], "little") > most):
        raise refused(too_large)
