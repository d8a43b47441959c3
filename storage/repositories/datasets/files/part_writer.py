"""Writer of the rows of documents by their parts; documents of one kind have one part."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from core.documents.kinds import Kind, Rows, RowsOfKind, field_of, in_words, is_dense, parts_of
from core.documents.rows import SparseRows
from core.errors import Fault, InvalidDocuments
from storage.process.settings import DatasetLimits
from storage.records import DatasetPart
from storage.repositories.datasets.files.row_writers import RowWriter, row_writer_of


class PartWriter(ExitStack):
    """Writer of the rows of one dataset; a context manager.

    Parts may come later than the first document: earlier ones lack them.
    """

    def __init__(self, folder: Path, limits: DatasetLimits) -> None:
        super().__init__()
        self._folder, self._limits = folder, limits
        self._writers: dict[str, RowWriter] = {}
        self._missing: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._n_rows = 0

    @property
    def kind(self) -> Kind:
        """Kind of the documents."""
        return next(iter(self._writers.values())).kind if len(self._writers) == 1 else "parts"

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

    def size(self) -> tuple[int | None, int | None]:
        """Numbers of features and of nonzeros of documents of one part; None of text, and of several parts."""
        facts = [writer.facts() for writer in self._writers.values()]
        return (facts[0].n_features, facts[0].n_nonzeros) if len(facts) == 1 else (None, None)

    def parts(self) -> list[DatasetPart]:
        """The parts for the manifest; empty if there is one, which the rest of the manifest describes."""
        if len(self._writers) == 1:
            return []
        return [self._part(name, writer) for name, writer in sorted(self._writers.items())]

    def warnings(self) -> list[str]:
        """Warnings about the rows."""
        if len(self._writers) == 1:
            return next(iter(self._writers.values())).facts().warnings
        return [
            f"{count} of {self._n_rows} documents without {name}"
            for name, count in sorted(self._missing.items())
            if count
        ]

    def _begin(self, name: str, part: RowsOfKind) -> None:
        folder = self._folder / f"part{len(self._writers)}"
        folder.mkdir()
        writer = self.enter_context(row_writer_of(part, folder, self._limits))
        if self._n_rows:
            writer.append(writer.empty_rows(self._n_rows))
        self._writers[name], self._missing[name] = writer, self._n_rows

    def _check_length(self, name: str, part: RowsOfKind) -> None:
        """Raise InvalidDocuments for dense vectors of another length than those before."""
        if not is_dense(name) or not isinstance(part, SparseRows):
            return
        known = self._lengths.setdefault(name, part.n_features)
        if known != part.n_features:
            detail = f"{name} has {part.n_features} numbers, but earlier ones have {known}"
            raise InvalidDocuments(detail, [Fault("", field_of(name), detail)])

    def _part(self, name: str, writer: RowWriter) -> DatasetPart:
        facts = writer.facts()
        return DatasetPart(
            name=name,
            kind=writer.kind,
            n_features=facts.n_features,
            n_nonzeros=facts.n_nonzeros,
            n_missing=self._missing[name],
        )


def content_of(part: str, content: str) -> str:
    """Name of a file of one of several parts, by its content."""
    return f"{part}.{content}"
