"""A body in memory as a file, for formats that are read from their end."""

import io
import tempfile
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import IO, Any


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
            part = self._blocks[block][begin : begin + missing]
            parts.append(part)
            self._at += len(part)
            missing -= len(part)
            block += 1
        return b"".join(parts)


class WholeBody:
    """A body that is stored until its end, in the file ``spool`` or, without one, in memory."""

    def __init__(self, spool: IO[bytes] | None) -> None:
        self._spool = spool
        self._blocks: list[bytes] = []

    def write(self, data: bytes) -> None:
        """The next bytes of the body."""
        if self._spool is None:
            self._blocks.append(data)
        else:
            self._spool.write(data)

    def file(self) -> Any:
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
