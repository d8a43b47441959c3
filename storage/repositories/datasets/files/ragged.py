"""Files of columns that have a number of elements by document: none, one or many."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import spans
from storage.repositories.datasets.files.npy import NpyWriter, chunks, open_array

_ELEMENTS = 1 << 20
"""elements that are sorted at a time"""
INDPTR = "indptr"


class RaggedWriter:
    """Writer of such columns, document after document.

    Memory does not grow with them; without elements there is no file.
    """

    def __init__(self, folder: Path, name: str, columns: Mapping[str, str]) -> None:
        """``columns`` are the types of the columns by name."""
        self._folder = folder
        self._name = name
        self._columns = {INDPTR: "<i8", **columns}
        self._files: dict[str, NpyWriter] = {}
        self._n_rows = self._n_elements = 0

    @property
    def n_bytes(self) -> int:
        """Bytes on disk so far."""
        return sum(file.n_bytes for file in self._files.values())

    def append(self, lengths: NDArray[np.int64] | None, columns: Mapping[str, NDArray[Any]], n_rows: int) -> None:
        """Append the elements of the next ``n_rows`` documents, so many of each; None: of none."""
        if lengths is not None and not self._files:
            self._files = self._opened("given")
            for part in chunks(np.broadcast_to(np.int64(0), self._n_rows + 1)):
                self._files[INDPTR].append(part)
        if self._files:
            counted = np.zeros(n_rows, np.int64) if lengths is None else lengths
            self._files[INDPTR].append(self._n_elements + np.cumsum(counted))
            for name, column in columns.items():
                self._files[name].append(column)
            self._n_elements += int(counted.sum())
        self._n_rows += n_rows

    def finish(self, numbers: Mapping[str, NDArray[np.int32]], keys: Sequence[str]) -> dict[str, Path]:
        """The finished files by content, none without elements.

        Values of the columns in ``numbers`` become these numbers, and the elements of each document ascend by the
        columns ``keys``.
        """
        if not self._files:
            return {}
        given = {name: open_array(file.finish()) for name, file in self._files.items()}
        indptr = given.pop(INDPTR)
        self._files = self._opened(self._name)
        for start, stop in spans(indptr, _ELEMENTS, _ELEMENTS):
            part = slice(int(indptr[start]), int(indptr[stop]))
            columns = {name: np.array(column[part]) for name, column in given.items()}
            columns |= {name: final[columns[name]] for name, final in numbers.items()}
            owners = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
            order = np.lexsort([*(columns[key] for key in reversed(keys)), owners])
            for name, column in columns.items():
                self._files[name].append(column[order])
        for part_of_indptr in chunks(indptr):
            self._files[INDPTR].append(part_of_indptr)
        for name in self._columns:
            (self._folder / f"given.{self._name}.{name}.npy").unlink()
        return {f"{self._name}.{name}": file.finish() for name, file in self._files.items()}

    def close(self) -> None:
        """Close the files, even when the rest cannot be written any more."""
        for file in self._files.values():
            file.close()

    def _opened(self, prefix: str) -> dict[str, NpyWriter]:
        name = self._name if prefix == self._name else f"{prefix}.{self._name}"
        return {
            column: NpyWriter(self._folder / f"{name}.{column}.npy", dtype) for column, dtype in self._columns.items()
        }
