"""Writers of the rows of one part of a dataset, one for each kind. Memory does not grow with the number of rows."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import NamedRows, PartKind, RowsOfKind, TextRows
from core.documents.rows import SparseRows, sorted_rows, without_zeros
from storage.errors import LimitExceeded
from storage.process.settings import DatasetLimits
from storage.repositories.datasets.files.npy import NpyWriter
from storage.repositories.datasets.manifest import document_warnings, text_warnings

SEEN_FEATURES = 1 << 24
"""Number of features up to which those that no document has are counted; beyond, they are hashes, most of which no
document has."""
_NAME_BYTES = 160
"""Bytes of memory of a short name."""
_SPACE_FIRSTS = np.unique([chr(point).encode()[0] for point in range(0x3001) if chr(point).isspace()])
"""Bytes with which white space may begin in UTF-8; no character beyond U+3000 is white space."""
_CJK_FIRST, _CJK_LAST = 0xE3, 0xE9
"""First bytes in UTF-8 of kana and of Chinese characters."""
_CLAUSE = re.compile(r"[\u3041-\u30ff\u4e00-\u9fff]{8}")
"""Characters in a row that hardly a single word has."""
_encode = msgspec.json.Encoder().encode


class Facts(NamedTuple):
    """Facts about the rows, for the manifest."""

    n_features: int | None
    n_nonzeros: int | None
    warnings: list[str]


class RowWriter(ExitStack, ABC):
    """Writer of the rows of one part; a context manager, with which its files are closed."""

    kind: PartKind

    def __init__(self, folder: Path, arrays: Mapping[str, str]) -> None:
        """``arrays``: types of the arrays by content, beside ``indptr``."""
        super().__init__()
        self._arrays = {
            content: self.enter_context(NpyWriter(folder / f"{content}.npy", dtype))
            for content, dtype in {"indptr": "<i8", **arrays}.items()
        }
        self._indptr = self._arrays["indptr"]
        self._indptr.append(np.zeros(1, np.int64))
        self._n_empty = 0

    @property
    def n_bytes(self) -> int:
        """Bytes on disk so far, without the first 0 of ``indptr``."""
        return sum(array.n_bytes for array in self._arrays.values()) - 8

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that grow with the rows."""
        return 0

    @abstractmethod
    def append(self, rows: RowsOfKind) -> None:
        """Append rows of its kind, which were validated; raises LimitExceeded."""

    @abstractmethod
    def empty_rows(self, count: int) -> RowsOfKind:
        """So many rows of documents without the part."""

    def finish(self) -> dict[str, Path]:
        """The finished files, by content."""
        return {content: array.finish() for content, array in self._arrays.items()}

    @abstractmethod
    def facts(self) -> Facts:
        """Facts about all rows."""


def row_writer_of(rows: RowsOfKind, folder: Path, limits: DatasetLimits) -> RowWriter:
    """A writer of rows of the kind of these."""
    match rows:
        case SparseRows():
            return _VectorWriter(folder, limits)
        case NamedRows():
            return _NamedWriter(folder, limits)
        case TextRows():
            return _TextWriter(folder)


class _VectorWriter(RowWriter):
    kind: PartKind = "vectors"

    def __init__(self, folder: Path, limits: DatasetLimits) -> None:
        super().__init__(folder, {"indices": "<u4", "values": "<f4"})
        self._limits = limits
        self._n_features = 0
        self._seen = np.zeros(0, bool)

    def append(self, rows: RowsOfKind) -> None:
        """See RowWriter."""
        assert isinstance(rows, SparseRows)
        if rows.n_features > self._limits.features:
            raise LimitExceeded("features", self._limits.features)
        rows = without_zeros(rows)
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        indices = self._arrays["indices"]
        if len(indices) + stop - start > self._limits.nonzeros:
            raise LimitExceeded("nonzeros", self._limits.nonzeros)
        self._indptr.append(rows.indptr[1:] - start + len(indices))
        indices.append(rows.indices[start:stop])
        self._arrays["values"].append(rows.values[start:stop])
        self._note(rows)

    def empty_rows(self, count: int) -> RowsOfKind:
        """See RowWriter."""
        return SparseRows(
            np.zeros(count + 1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32), self._n_features
        )

    def facts(self) -> Facts:
        """See RowWriter."""
        unseen = self._n_features - int(self._seen.sum()) if self._n_features <= SEEN_FEATURES else None
        return Facts(self._n_features, len(self._arrays["indices"]), document_warnings(self._n_empty, unseen))

    def _note(self, rows: SparseRows) -> None:
        """Count features and empty rows, for the manifest."""
        self._n_features = max(self._n_features, rows.n_features)
        self._n_empty += int(np.count_nonzero(rows.indptr[1:] == rows.indptr[:-1]))
        if self._n_features > SEEN_FEATURES:
            self._seen = np.zeros(0, bool)
            return
        if len(self._seen) < self._n_features:
            self._seen = np.pad(self._seen, (0, self._n_features - len(self._seen)))
        indices = rows.indices[rows.indptr[0] : rows.indptr[-1]]
        # most are marked before long, and a look-up takes a fraction of the time of marking
        self._seen[indices[~self._seen.take(indices, mode="clip")]] = True


class _NamedWriter(_VectorWriter):
    """Writer of named features. Names become columns in the order in which they first occur."""

    kind: PartKind = "features"

    def __init__(self, folder: Path, limits: DatasetLimits) -> None:
        super().__init__(folder, limits)
        self._columns: dict[str, int] = {}
        self._names: IO[bytes] = (folder / "names.ndjson").open("wb")
        self.callback(self._close_names)
        self._name_bytes = 0

    @property
    def n_bytes(self) -> int:
        """See RowWriter."""
        return super().n_bytes + self._name_bytes

    @property
    def held_bytes(self) -> int:
        """See RowWriter."""
        return _NAME_BYTES * len(self._columns) + self._name_bytes

    def append(self, rows: RowsOfKind) -> None:
        """See RowWriter."""
        assert isinstance(rows, NamedRows)
        columns = self._columns_of(rows)
        numbered = rows.rows._replace(indices=columns[rows.rows.indices], n_features=len(self._columns))
        super().append(sorted_rows(numbered))

    def empty_rows(self, count: int) -> RowsOfKind:
        """See RowWriter."""
        empty = super().empty_rows(count)
        assert isinstance(empty, SparseRows)
        return NamedRows(empty._replace(n_features=0), [])

    def finish(self) -> dict[str, Path]:
        """See RowWriter."""
        self._names.close()
        return {**super().finish(), "names": Path(self._names.name)}

    def _close_names(self) -> None:
        """Close the file of the names, even when the rest cannot be written any more."""
        with suppress(OSError):
            self._names.close()

    def _columns_of(self, rows: NamedRows) -> NDArray[np.uint32]:
        known = len(self._columns)
        columns = np.array([self._columns.setdefault(name, len(self._columns)) for name in rows.names], np.uint32)
        if len(self._columns) > self._limits.names:
            raise LimitExceeded("names of features", self._limits.names)
        if len(self._columns) > known:
            fresh = b"".join(
                _encode(name) + b"\n"
                for name, column in zip(rows.names, columns.tolist(), strict=True)
                if column >= known
            )
            self._name_bytes += self._names.write(fresh)
        return columns


class _TextWriter(RowWriter):
    kind: PartKind = "text"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"text": "|u1"})
        self._n_unspaced = 0

    def append(self, rows: RowsOfKind) -> None:
        """See RowWriter."""
        assert isinstance(rows, TextRows)
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        self._indptr.append(rows.indptr[1:] - start + len(self._arrays["text"]))
        self._arrays["text"].append(rows.data[start:stop])
        self._n_empty += _n_blank(rows)
        self._n_unspaced += _n_unspaced(rows)

    def empty_rows(self, count: int) -> RowsOfKind:
        """See RowWriter."""
        return TextRows(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8))

    def facts(self) -> Facts:
        """See RowWriter."""
        return Facts(None, None, text_warnings(self._n_empty, self._n_unspaced))


def _n_unspaced(rows: TextRows) -> int:
    """Number of texts with a clause of Chinese or Japanese that has no space.

    A block without bytes of these is not decoded.
    """
    data = rows.data[int(rows.indptr[0]) : int(rows.indptr[-1])]
    if not ((data >= _CJK_FIRST) & (data <= _CJK_LAST)).any():
        return 0
    return sum(_CLAUSE.search(text) is not None for text in rows)


def _n_blank(rows: TextRows) -> int:
    """Number of texts with nothing but white space. Only texts that begin with it are decoded."""
    lengths = np.diff(rows.indptr)
    filled = np.flatnonzero(lengths)
    firsts = rows.data[rows.indptr[:-1][filled]]
    spaced = filled[np.isin(firsts, _SPACE_FIRSTS)]
    return rows.n_rows - len(filled) + sum(not text.strip() for text in rows.taken(spaced))
