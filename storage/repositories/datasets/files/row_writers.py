"""Writers of the rows of documents: by their parts, and of one part, one for each kind. Documents of one kind have one
part.

Memory does not grow with the number of rows.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import (
    Kind,
    NamedRows,
    PartKind,
    Rows,
    RowsOfKind,
    TextRows,
    field_of,
    in_words,
    is_dense,
    parts_of,
)
from core.documents.rows import SparseRows, sorted_rows, without_zeros
from core.errors import InvalidDocuments, refused
from storage.errors import LimitExceeded
from storage.process.settings import Settings
from storage.records import DatasetPart
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


class RowFacts(NamedTuple):
    """Facts about the rows, for the manifest."""

    kind: Kind
    n_features: int | None
    """number of features of documents of one part; None of text, and of several parts"""
    n_nonzeros: int | None
    """number of nonzeros; None likewise"""
    warnings: list[str]
    parts: list[DatasetPart]
    """empty if there is one part, which the rest describes"""


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
    def facts(self) -> RowFacts:
        """Facts about all rows."""


def row_writer_of(rows: RowsOfKind, folder: Path, settings: Settings) -> RowWriter:
    """A writer of rows of the kind of these."""
    match rows:
        case SparseRows():
            return _VectorWriter(folder, settings)
        case NamedRows():
            return _NamedWriter(folder, settings)
        case TextRows():
            return _TextWriter(folder)


class _VectorWriter(RowWriter):
    kind: PartKind = "vectors"

    def __init__(self, folder: Path, settings: Settings) -> None:
        super().__init__(folder, {"indices": "<u4", "values": "<f4"})
        self._settings = settings
        self._n_features = 0
        self._seen = np.zeros(0, bool)

    def append(self, rows: RowsOfKind) -> None:
        """See RowWriter."""
        assert isinstance(rows, SparseRows)
        if rows.n_features > self._settings.max_features:
            raise LimitExceeded("features", self._settings.max_features)
        rows = without_zeros(rows)
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        indices = self._arrays["indices"]
        if len(indices) + stop - start > self._settings.max_nonzeros:
            raise LimitExceeded("nonzeros", self._settings.max_nonzeros)
        self._indptr.append(rows.indptr[1:] - start + len(indices))
        indices.append(rows.indices[start:stop])
        self._arrays["values"].append(rows.values[start:stop])
        self._note(rows)

    def empty_rows(self, count: int) -> RowsOfKind:
        """See RowWriter."""
        return SparseRows.empty(count, self._n_features)

    def facts(self) -> RowFacts:
        """See RowWriter."""
        unseen = self._n_features - int(self._seen.sum()) if self._n_features <= SEEN_FEATURES else None
        warnings = document_warnings(self._n_empty, unseen)
        return RowFacts(self.kind, self._n_features, len(self._arrays["indices"]), warnings, [])

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

    def __init__(self, folder: Path, settings: Settings) -> None:
        super().__init__(folder, settings)
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
        if len(self._columns) > self._settings.max_feature_names:
            raise LimitExceeded("names of features", self._settings.max_feature_names)
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
        # of texts with nothing but white space only those that begin with it are decoded
        filled = np.flatnonzero(np.diff(rows.indptr))
        spaced = filled[np.isin(rows.data[rows.indptr[:-1][filled]], _SPACE_FIRSTS)]
        self._n_empty += rows.n_rows - len(filled) + sum(not text.strip() for text in rows.taken(spaced))
        self._n_unspaced += _n_unspaced(rows)

    def empty_rows(self, count: int) -> RowsOfKind:
        """See RowWriter."""
        return TextRows(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8))

    def facts(self) -> RowFacts:
        """See RowWriter."""
        return RowFacts(self.kind, None, None, text_warnings(self._n_empty, self._n_unspaced), [])


def _n_unspaced(rows: TextRows) -> int:
    """Number of texts with a clause of Chinese or Japanese that has no space.

    A block without bytes of these is not decoded.
    """
    data = rows.data[int(rows.indptr[0]) : int(rows.indptr[-1])]
    if not ((data >= _CJK_FIRST) & (data <= _CJK_LAST)).any():
        return 0
    return sum(_CLAUSE.search(text) is not None for text in rows)


class PartWriter(ExitStack):
    """Writer of the rows of one dataset; a context manager.

    Parts may come later than the first document: earlier ones lack them.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        super().__init__()
        self._folder, self._settings = folder, settings
        self._writers: dict[str, RowWriter] = {}
        self._missing: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._n_rows = 0

    @property
    def n_bytes(self) -> int:
        """Bytes on disk so far."""
        return sum(writer.n_bytes for writer in self._writers.values())

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that grow with the rows."""
        return sum(writer.held_bytes for writer in self._writers.values())

    def append(self, rows: Rows) -> None:
        """Append rows, which were validated.

        Raises LimitExceeded, and InvalidDocuments for rows that share no part with those before, or whose dense vectors
        are not as long.
        """
        if not rows.n_rows:
            return
        given = parts_of(rows)
        if self._writers and not given.keys() & self._writers.keys():
            raise InvalidDocuments(
                f"documents with {in_words(self._writers)} cannot be followed by documents with {in_words(given)}"
            )
        for name, part in given.items():
            self._check_length(name, part)
            if name not in self._writers:
                self._begin(name, part)
        for name, writer in self._writers.items():
            part = given[name] if name in given else writer.empty_rows(rows.n_rows)
            self._missing[name] += int(np.count_nonzero(part.indptr[1:] == part.indptr[:-1]))
            writer.append(part)
        self._n_rows += rows.n_rows

    def finish(self) -> dict[str, Path]:
        """The finished files, by content; of several parts with the name of the part before it."""
        if len(self._writers) == 1:
            return next(iter(self._writers.values())).finish()
        return {
            content_of(name, content): path
            for name, writer in self._writers.items()
            for content, path in writer.finish().items()
        }

    def facts(self) -> RowFacts:
        """Facts about the rows of all parts."""
        known = {name: writer.facts() for name, writer in sorted(self._writers.items())}
        if len(known) == 1:
            return next(iter(known.values()))
        parts = [
            DatasetPart(
                name=name,
                kind=self._writers[name].kind,
                n_features=facts.n_features,
                n_nonzeros=facts.n_nonzeros,
                n_missing=self._missing[name],
            )
            for name, facts in known.items()
        ]
        missing = [part for part in parts if part.n_missing]
        warnings = [f"{part.n_missing} of {self._n_rows} documents without {part.name}" for part in missing]
        return RowFacts("parts", None, None, warnings, parts)

    def _begin(self, name: str, part: RowsOfKind) -> None:
        folder = self._folder / f"part{len(self._writers)}"
        folder.mkdir()
        writer = self.enter_context(row_writer_of(part, folder, self._settings))
        if self._n_rows:
            writer.append(writer.empty_rows(self._n_rows))
        self._writers[name], self._missing[name] = writer, self._n_rows

    def _check_length(self, name: str, part: RowsOfKind) -> None:
        """Raise InvalidDocuments for dense vectors of another length than those before."""
        if not is_dense(name) or not isinstance(part, SparseRows):
            return
        known = self._lengths.setdefault(name, part.n_features)
        if known != part.n_features:
            raise refused(f"{name} has {part.n_features} numbers, but earlier ones have {known}", field_of(name))


def content_of(part: str, content: str) -> str:
    """Name of a file of one of several parts, by its content."""
    return f"{part}.{content}"
