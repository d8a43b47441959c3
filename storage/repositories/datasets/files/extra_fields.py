"""Extra fields of documents, which are kept beside them and not learned from: a line of JSON for each document, an
array of values by name.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.errors import refused
from storage.errors import LimitExceeded
from storage.records import MAX_TEXT
from storage.repositories.datasets.files.npy import NpyWriter, chunks
from storage.repositories.datasets.labels import LEAVE_OUT, MAX_NAMES, ExtraFields

LINES, INDPTR = "fields", "fields.indptr"
"""Names of the files, by content."""
_NOTHING = b"[]\n"
_encode_lines = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder(list[Any]).decode


class ExtraFieldsWriter:
    """Writer of the extra fields of a dataset, in order.

    Memory does not grow with the documents; without fields there is no file.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        """The stack closes the files."""
        self._folder, self._stack = folder, stack
        self._names: dict[str, None] = {}
        self._length = 0
        self._lines: NpyWriter | None = None
        self._indptr: NpyWriter | None = None

    @property
    def names(self) -> list[str]:
        """Names of the fields in the order in which they first occurred."""
        return list(self._names)

    @property
    def n_bytes(self) -> int:
        """Bytes on disk so far."""
        return 0 if self._lines is None or self._indptr is None else self._lines.n_bytes + self._indptr.n_bytes

    def append(self, fields: ExtraFields | None, length: int) -> None:
        """Append the fields of the next ``length`` documents, None where they have none.

        Raises InvalidDocuments, LimitExceeded for names.
        """
        if fields is not None and fields.names:
            self._add_names(fields.names)
            if self._lines is None:
                self._lines = self._stack.enter_context(NpyWriter(self._folder / "fields.npy", "|u1"))
                self._indptr = self._stack.enter_context(NpyWriter(self._folder / "fields.indptr.npy", "<i8"))
                self._indptr.append(np.zeros(1, np.int64))
                for part in chunks(np.broadcast_to(np.int8(0), self._length)):
                    self._write(_NOTHING * len(part))
            self._write(_encode_lines(self._in_order(fields)))
        elif self._lines is not None:
            self._write(_NOTHING * length)
        self._length += length

    def finish(self) -> dict[str, Path]:
        """The finished files by content; none without fields."""
        if self._lines is None or self._indptr is None:
            return {}
        return {LINES: self._lines.finish(), INDPTR: self._indptr.finish()}

    def _add_names(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._names:
                _check_name(name)
                self._names[name] = None
        if len(self._names) > MAX_NAMES:
            raise LimitExceeded("names of extra fields", MAX_NAMES, LEAVE_OUT)

    def _in_order(self, fields: ExtraFields) -> list[Sequence[Any]]:
        """The values by the names of the dataset.

        Values at the end that are None are left out, so that a line does not depend on later names.
        """
        values: Sequence[Sequence[Any]] = fields.values
        if list(fields.names) != self.names[: len(fields.names)]:
            places = {name: place for place, name in enumerate(fields.names)}
            order = [places.get(name, -1) for name in self._names]
            values = [[row[place] if 0 <= place < len(row) else None for place in order] for row in values]
        return [row if row and row[-1] is not None else _trimmed(row) for row in values]

    def _write(self, lines: bytes) -> None:
        assert self._lines is not None
        assert self._indptr is not None
        data = np.frombuffer(lines, np.uint8)
        # JSON escapes line ends in strings, so each line has one
        self._indptr.append(np.flatnonzero(data == ord("\n")) + 1 + len(self._lines))
        self._lines.append(data)


class StoredFields:
    """Extra fields of the documents of a dataset."""

    def __init__(self, names: Sequence[str], lines: TextRows | None) -> None:
        self.names = names
        self._lines = lines

    def __bool__(self) -> bool:
        return bool(self.names)

    def lengths(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bytes of the fields of the documents at these positions, shape (n_positions,)."""
        if self._lines is None:
            return np.zeros(len(positions), np.int64)
        return self._lines.indptr[positions + 1] - self._lines.indptr[positions]

    def taken(self, positions: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
        """The fields of the documents at these positions, by name, without those that a document lacks."""
        if self._lines is None:
            return ({} for _ in positions)
        lines = map(_decode, self._lines.taken(positions))
        return (
            {name: value for name, value in zip(self.names, line, strict=False) if value is not None} for line in lines
        )


def _trimmed(row: Sequence[Any]) -> Sequence[Any]:
    length = len(row)
    while length and row[length - 1] is None:
        length -= 1
    return row[:length]


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= MAX_TEXT:
        raise refused(
            f"the name of an extra field must have 1 to {MAX_TEXT} characters, not {len(name)}; {LEAVE_OUT}", "fields"
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise refused(f"the name {name!r} of an extra field is not valid Unicode", "fields") from None
