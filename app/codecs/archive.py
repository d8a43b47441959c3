"""A zip of .npy arrays, read side by side a slice at a time. Nothing is ever unpickled, and nothing is believed that was not compared."""

import errno
import io
import struct
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from app.codecs.base import MAX_TEXT
from core.errors import Fault, InvalidDocuments
from workers.errors import LimitExceeded

_HEADER_BYTES = 4096
_DIRECTORY_BYTES = 64 << 10
_ZIP64_BYTES = 1 << 32

_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, UnicodeError),
    *(EOFError, NotImplementedError, OverflowError, RuntimeError),
)
"""What zipfile raises over a damaged zip, beside an OSError of a place that no file has."""


class Kind(NamedTuple):
    """What an array of one name may be."""

    types: str
    """kinds of NumPy's types, a letter each"""
    dimensions: int = 1


class Array(NamedTuple):
    """One member of the zip: what its header says, and the numbers after it."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    """whether the numbers come column after column"""
    stream: IO[bytes]

    @property
    def length(self) -> int:
        """Rows."""
        return self.shape[0]

    def take(self, count: int) -> NDArray[Any]:
        """The next numbers, in the order in which they are stored; zip and array both say how many there are, and they have been compared."""
        data = self.stream.read(count * self.dtype.itemsize)
        if len(data) != count * self.dtype.itemsize:
            raise refused(self.name, "has fewer numbers than its header says")
        return np.frombuffer(data, self.dtype)

    def close(self) -> None:
        """Read to the end, which is where the zip's checksum is compared."""
        if self.stream.read(1):
            raise refused(self.name, "has more numbers than are accounted for")


class Blocks(io.RawIOBase):
    """Blocks of bytes, read as one file without a copy of the whole."""

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self._blocks = blocks
        self._ends = list(accumulate(map(len, blocks)))
        self._at = 0

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See IOBase."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ends[-1] if self._ends else 0}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """See RawIOBase; as much as was asked for, up to the end."""
        place, parts, missing = bisect_right(self._ends, self._at), [], size if size >= 0 else (self._ends or [0])[-1]
        while missing > 0 and place < len(self._blocks):
            begin = self._at - (self._ends[place] - len(self._blocks[place]))
            part = self._blocks[place][begin : begin + missing]
            parts.append(part)
            self._at += len(part)
            missing -= len(part)
            place += 1
        return b"".join(parts)


def refused(name: str, detail: str) -> InvalidDocuments:
    """The error of a body in which this array, or none in particular, is wrong."""
    return InvalidDocuments(f"{name}: {detail}" if name else detail, [Fault("", name, detail)])


@contextmanager
def reading() -> Iterator[None]:
    """What a damaged zip raises in the block becomes a refusal."""
    try:
        yield
    except (*_BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise refused("", f"not a readable zip of arrays: {error}") from error


def check_directory(spool: IO[bytes]) -> None:
    """Refuse a directory of millions of members before it is read into memory; only a file beyond 4 GiB needs a zip64 one."""
    size = spool.seek(0, 2)
    tail_bytes = min(size, 22 + (1 << 16))
    spool.seek(size - tail_bytes)
    tail = spool.read(tail_bytes)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(tail):
        raise refused("", "not a zip, or cut short")
    zip64 = b"PK\x06\x07" in tail[max(0, end - 20) : end]
    if size < _ZIP64_BYTES and (zip64 or int.from_bytes(tail[end + 12 : end + 16], "little") > _DIRECTORY_BYTES):
        raise refused("", "its directory is too large for the few arrays it may hold")


def open_arrays(archive: zipfile.ZipFile, kinds: Mapping[str, Kind], ignored: Sequence[str], most: int, stack: ExitStack) -> dict[str, Array]:
    """The arrays of these names that the zip holds, open until the stack is closed.

    Raises InvalidDocuments where it holds anything else but the ``ignored``, or an array that is not as its kind says; LimitExceeded where
    they unpack to more than ``most`` bytes.
    """
    members = _members(archive, kinds, ignored)
    if sum(info.file_size for info in members.values()) > most:
        raise LimitExceeded("bytes in the unpacked body", most)
    if "format" in members:
        _check_format(archive, members["format"])
    return {
        name: _array(name, kind, stack.enter_context(archive.open(members[name])), members[name].file_size)
        for name, kind in kinds.items()
        if name in members
    }


def _members(archive: zipfile.ZipFile, kinds: Mapping[str, Kind], ignored: Sequence[str]) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename or name not in (*kinds, *ignored) or name in members:
            raise refused(name[:MAX_TEXT], f"unexpected member {info.filename[:MAX_TEXT]!r}; known are the arrays {', '.join(kinds)}, each once")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refused(name, "is compressed otherwise than by deflate")
        members[name] = info
    return members


def _check_format(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    with archive.open(info) as stream:
        dtype, shape, _ = _header("format", stream)
        text = stream.read(16).rstrip(b"\0").replace(b"\0", b"")
    if dtype.kind not in "SU" or shape != () or text != b"csr":
        raise refused("format", "the matrix must be in CSR format")


def _header(name: str, stream: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    readers: dict[tuple[int, int], Callable[..., Any]] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        reader = readers[npy.read_magic(stream)]
        shape, fortran, dtype = reader(stream, max_header_size=_HEADER_BYTES)
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise refused(name, "is not a .npy array of format 1.0 or 2.0") from error
    if dtype.hasobject:
        raise refused(name, "is an array of Python objects, which are never unpickled")
    return dtype, shape, fortran


def _array(name: str, kind: Kind, stream: IO[bytes], member_bytes: int) -> Array:
    dtype, shape, fortran = _header(name, stream)
    if dtype.kind == "S" and "U" in kind.types:
        raise refused(name, f"is of bytes, of which nobody says what characters they are; send {name}.astype(str)")
    if dtype.kind not in kind.types or dtype.names or dtype.itemsize == 0:
        raise refused(name, f"is an array of {dtype}, which it cannot be")
    if dtype.kind == "U" and dtype.itemsize > 4 * MAX_TEXT:
        raise refused(name, f"has texts longer than {MAX_TEXT} characters")
    if len(shape) != kind.dimensions or min(shape) < 0:
        wanted = "one dimension" if kind.dimensions == 1 else "two dimensions, documents and features"
        raise refused(name, f"must have {wanted}, not {len(shape)}")
    count = int(np.prod(shape, dtype=object))
    if stream.tell() + count * dtype.itemsize != member_bytes:
        raise refused(name, f"its header says {count} numbers, its size differs")
    # with a single dimension, or a single row or column, both orders are the same
    return Array(name, dtype, shape, fortran and min(shape) > 1 and len(shape) > 1, stream)
