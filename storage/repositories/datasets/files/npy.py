"""One-dimensional .npy files: written piece by piece, so that memory does not grow with them, and read by
memory-mapping.
"""

from collections.abc import Iterator
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

_HEADER_BYTES = 128


class NpyWriter:
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
        self._file.write(_header(self._dtype, self._length))
        self._file.close()
        return self._path

    def close(self) -> None:
        """Close without a header, even when the rest cannot be written any more; harmless after ``finish``."""
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class OptionalColumn:
    """Writer of a number for each document, whose file exists only where one is not the usual one."""

    def __init__(self, path: Path, dtype: str, usual: float) -> None:
        self._file = NpyWriter(path, dtype)
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

    def close(self) -> None:
        """Close the file, even when the rest cannot be written any more."""
        self._file.close()


def open_array(path: Path) -> NDArray[Any]:
    """The array of an .npy file, memory-mapped and read-only. An empty one, which cannot be mapped, is read."""
    mode: Literal["r"] | None = None if path.stat().st_size == _HEADER_BYTES else "r"
    array: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    return array


def open_bytes(path: Path) -> mmap | bytes:
    """The bytes of any file, memory-mapped and read-only."""
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""


def chunks(array: NDArray[Any], length: int = 1 << 20) -> Iterator[NDArray[Any]]:
    """Consecutive slices of an array."""
    return (array[start : start + length] for start in range(0, len(array), length))


def _header(dtype: np.dtype[Any], length: int) -> bytes:
    """A header of version 1.0 of exactly ``_HEADER_BYTES``.

    NumPy pads its own to a multiple of 64, which varies with the length of the array.
    """
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
    magic = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little")
    return magic + text.ljust(_HEADER_BYTES - 11).encode("ascii") + b"\n"
