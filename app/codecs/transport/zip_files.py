"""Zip files: the errors of damaged ones, and a bound on what zipfile reads into memory."""

import errno
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from app.codecs.faults import refused

_ZIP64_BYTES = 1 << 32
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, UnicodeError),
    *(EOFError, NotImplementedError, OverflowError, RuntimeError),
)
"""Errors that zipfile raises on a damaged file, beside an OSError for an offset that the file does not have."""


@contextmanager
def zip_errors(what: str) -> Iterator[None]:
    """Errors of a damaged zip file inside the block become InvalidDocuments; ``what`` says what the file is not."""
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
