"""Columns of a dataset in one-dimensional .npy files: written piece by piece, so that memory does not grow with them,
and read by memory-mapping.

A column has a number for each document, a number only where one is not the usual one, or any number of elements by
document. How labels were come by is a column of bytes, values of core.documents.drawn.Draw.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from core.documents.drawn import Draw
from core.documents.kinds import spans

_HEADER_BYTES = 128


class NpyWriter(AbstractContextManager["NpyWriter"]):
    """Writer of an .npy file of one dimension, to which arrays are appended; ``finish`` makes it readable."""

    def __init__(self, path: Path, dtype: str) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._file: IO[bytes] = path.open("wb")
        self._file.write(bytes(_HEADER_BYTES))

    def __len__(self) -> int:
        return self._length

    @property
    def n_bytes(self) -> int:
        """Bytes of the elements so far."""
        return self._length * self._dtype.itemsize

    def append(self, array: NDArray[Any]) -> None:
        """Append the elements of an array, cast to the type of the file."""
        self._file.write(np.ascontiguousarray(array, self._dtype).data)
        self._length += len(array)

    def finish(self) -> Path:
        """Write the header, now that the length is known, and close the file."""
        self._file.seek(0)
        # of version 1.0, of exactly _HEADER_BYTES: NumPy pads its own to a multiple of 64, which varies with the length
        text = f"{{'descr': '{self._dtype.str}', 'fortran_order': False, 'shape': ({self._length},), }}"
        magic = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little")
        self._file.write(magic + text.ljust(_HEADER_BYTES - 11).encode("ascii") + b"\n")
        self._file.close()
        return self._path

    def close(self) -> None:
        """Close without a header, even when the rest cannot be written any more; harmless after ``finish``."""
        with suppress(OSError):
            self._file.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class OptionalColumn:
    """Writer of a number for each document, whose file exists only where one is not the usual one."""

    def __init__(self, path: Path, dtype: str, usual: float, stack: ExitStack) -> None:
        """The stack closes the file."""
        self._file = stack.enter_context(NpyWriter(path, dtype))
        self._usual = usual
        self._known = False

    def append(self, given: NDArray[Any] | None, length: int) -> None:
        """Append the numbers of the next ``length`` documents, None where all are the usual one."""
        self._known = self._known or (given is not None and bool((given != self._usual).any()))
        self._file.append(np.full(length, self._usual) if given is None else given)

    @property
    def n_bytes(self) -> int:
        """Bytes to store so far."""
        return self._file.n_bytes if self._known else 0

    def finish(self) -> Path | None:
        """The finished file, None if all numbers are the usual one."""
        return self._file.finish() if self._known else None


def open_array(path: Path) -> NDArray[Any]:
    """The array of an .npy file, memory-mapped and read-only. An empty one, which cannot be mapped, is read."""
    mode: Literal["r"] | None = None if path.stat().st_size == _HEADER_BYTES else "r"
    array: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    return array


def open_bytes(path: Path) -> mmap | bytes:
    """The bytes of any file, memory-mapped and read-only."""
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""


def mapped(file: IO[bytes], dtype: DTypeLike, count: int) -> NDArray[Any]:
    """An array of zeros in an empty file, memory-mapped. Its blocks are reserved first, so that a full disk is an
    OSError: a page without a block would kill the process.
    """
    size = count * np.dtype(dtype).itemsize
    if sys.platform == "linux":
        os.posix_fallocate(file.fileno(), 0, size)
    else:  # a Mac cannot reserve: a disk that fills up ends the process there
        file.truncate(size)
    return np.ndarray((count,), dtype, mmap(file.fileno(), size))


def chunks(array: NDArray[Any], length: int = 1 << 20) -> Iterator[NDArray[Any]]:
    """Consecutive slices of an array."""
    return (array[start : start + length] for start in range(0, len(array), length))


def grouped(
    read: Callable[[], Iterator[Sequence[NDArray[Any]]]], ends: NDArray[np.int64], columns: Sequence[NDArray[Any]]
) -> Iterator[None]:
    """Write the elements of all pieces to ``columns`` by group; those of a group keep their order. The time is linear
    in elements and groups, and the memory is that of a piece.

    Each piece has the groups of its elements, then their values for each column. It is read twice, and is a step each
    time. ``ends`` are n_groups + 2 zeros. Afterwards group g lies between its places g and g + 1.
    """
    for groups, *_ in read():
        found, times = np.unique(groups, return_counts=True)
        ends[2:][found] += times  # two may be too much to add to the number of a group, where a byte holds it
        yield
    np.cumsum(ends, out=ends)
    for groups, *values in read():
        order = np.argsort(groups, kind="stable")
        found, firsts, times = np.unique(groups[order], return_index=True, return_counts=True)
        places = np.repeat(ends[1:][found] - firsts, times) + np.arange(len(order))
        for column, each in zip(columns, values, strict=True):
            column[places] = each[order]
        ends[1:][found] += times
        yield


_ELEMENTS = 1 << 18
"""elements that are sorted at a time"""
INDPTR = "indptr"


class RaggedWriter:
    """Writer of such columns, document after document.

    Memory does not grow with them; without elements there is no file.
    """

    def __init__(self, folder: Path, name: str, columns: Mapping[str, str], stack: ExitStack) -> None:
        """``columns`` are the types of the columns by name. The stack closes the files."""
        self._stack = stack
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

    def _opened(self, prefix: str) -> dict[str, NpyWriter]:
        name = self._name if prefix == self._name else f"{prefix}.{self._name}"
        return {
            column: self._stack.enter_context(NpyWriter(self._folder / f"{name}.{column}.npy", dtype))
            for column, dtype in self._columns.items()
        }


WITHOUT_LABEL = "says how a label was come by, but the document has no label"


class DrawnWriter(OptionalColumn):
    """Writer of the draws of a dataset, in order. Memory does not grow with them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        super().__init__(folder / "drawn.npy", "|i1", Draw.UNKNOWN, stack)
        self._counts = np.zeros(len(Draw), np.int64)

    def append(self, given: NDArray[Any] | None, length: int) -> None:
        """Append the draws of the next ``length`` documents, None where nothing is known of them."""
        super().append(given, length)
        self._counts += 0 if given is None else np.bincount(given, minlength=len(Draw))

    @property
    def counts(self) -> dict[str, int]:
        """Number of labels by how they were come by, where that is known."""
        return {draw.word: int(self._counts[draw]) for draw in Draw if draw is not Draw.UNKNOWN and self._counts[draw]}


def draw_detail(word: object) -> str | None:
    """Why this is not how a label was come by; None if it is."""
    words = [draw.word for draw in Draw]
    return None if word in words else f"must be one of {', '.join(words)}"
