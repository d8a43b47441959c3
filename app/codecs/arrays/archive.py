"""Arrays of .npy format in a zip file, read in parallel a slice at a time: numbers, labels, ids and texts.

Nothing is unpickled. What a header says is compared with what the file holds before it is used.

Arrays in another order, by column (CSC), by coordinates (COO), or in several streams, become rows: entries are counted
by row, then written to the place of their row in files that are mapped into memory. So memory does not grow with them.
"""

import io
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from app.codecs.base import LARGEST_WHOLE, Reading, check_limit
from core.documents.kinds import PartRows, Rows, parts_of
from core.documents.rows import SparseRows
from core.errors import did_you_mean, refused
from storage.records import MAX_TEXT, Label
from storage.repositories.datasets.files.npy import grouped, mapped
from storage.repositories.datasets.labels import LabelLists

SPARSE_FORMATS = ("csr", "csc", "coo")
_TYPE_REMEDIES = {
    "U": "; an array of texts is called text",
    "S": "; an array of texts is called text",
    "c": "; send its real part",
}
"""What to do about types that hold no numbers, by their kind in NumPy."""
_HEADER_BYTES = 4096
DIRECTORY_BYTES = 64 << 10
"""Bytes of the directory of a zip file of arrays at most."""


class ArraySpec(NamedTuple):
    """The types and dimensions that an array of a name may have."""

    types: str
    """NumPy's letters of the kinds of types that are accepted."""
    dimensions: int = 1
    longest: int | None = MAX_TEXT
    """Characters of a string at most; None where the reader decides."""


class Array(NamedTuple):
    """One array of the zip file: its header, and a stream of its numbers."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    """Whether the numbers are stored column by column."""
    stream: IO[bytes]
    start: int = 0
    """Where the numbers begin in the stream."""

    @property
    def length(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def read(self, count: int) -> NDArray[Any]:
        """The next ``count`` numbers, in the order in which they are stored.

        Raises InvalidDocuments if fewer are left.
        """
        data = self.stream.read(count * self.dtype.itemsize)
        if len(data) != count * self.dtype.itemsize:
            raise refused("has fewer numbers than its header says", self.name)
        return np.frombuffer(data, self.dtype)

    def rewind(self) -> None:
        """Begin again with the first number."""
        self.stream.seek(self.start)

    def finish(self) -> None:
        """Read to the end, where zipfile compares the checksum. Raises InvalidDocuments if numbers are left."""
        if self.stream.read(1):
            raise refused("has more numbers than the other arrays need", self.name)


Arrays = Mapping[str, Array]


def open_arrays(
    archive: zipfile.ZipFile, specs: Mapping[str, ArraySpec], ignored: Sequence[str], most: int, stack: ExitStack
) -> dict[str, Array]:
    """The arrays that the zip file holds, by name; they stay open until the stack is closed.

    Raises InvalidDocuments for any other member that is not ``ignored`` and for an array that does not match its spec,
    LimitExceeded where the members decompress to more than ``most`` bytes.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename or name not in (*specs, *ignored) or name in members:
            filename = info.filename[:MAX_TEXT]
            advice = did_you_mean(filename.removesuffix(".npy"), specs) or ";"
            raise refused(
                f"unexpected member {filename!r}{advice} the arrays are {', '.join(specs)}, each once", name[:MAX_TEXT]
            )
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refused("is compressed by a method other than deflate", name)
        members[name] = info
    check_limit(sum(info.file_size for info in members.values()), "bytes in the decompressed body", most)
    return {
        name: _array(name, spec, stack.enter_context(archive.open(members[name])), members[name].file_size)
        for name, spec in specs.items()
        if name in members
    }


def open_array(name: str, spec: ArraySpec, spool: IO[bytes]) -> Array:
    """The array of a .npy file; raises InvalidDocuments if it does not match its spec."""
    size = spool.seek(0, io.SEEK_END)
    spool.seek(0)
    return _array(name, spec, spool, size)


def sparse_format(archive: zipfile.ZipFile) -> str:
    """Format of the matrix as scipy.sparse.save_npz names it, empty if it does not; raises InvalidDocuments for an
    unknown one.
    """
    if "format.npy" not in archive.namelist():
        return ""
    with archive.open("format.npy") as stream:
        dtype, shape, _ = _header("format", stream)
        text = stream.read(16).replace(b"\0", b"")
    if dtype.kind not in "SU" or shape != ():
        raise refused("must be a word, as scipy.sparse.save_npz writes it", "format")
    word = text.decode("ascii", "replace")
    if word not in SPARSE_FORMATS:
        raise refused(f"the matrix is in {word!r} format; send it by rows, as of matrix.tocsr()", "format")
    return word


def _header(name: str, stream: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    readers: dict[tuple[int, int], Callable[..., Any]] = {
        (1, 0): npy.read_array_header_1_0,
        (2, 0): npy.read_array_header_2_0,
    }
    try:
        reader = readers[npy.read_magic(stream)]
        shape, fortran, dtype = reader(stream, max_header_size=_HEADER_BYTES)
    except (ValueError, KeyError, TypeError, SyntaxError, TokenError) as error:
        raise refused("is not a .npy array of format 1.0 or 2.0", name) from error
    if dtype.hasobject:
        remedy = f"{name}.astype(str)" if name in ("labels", "ids") else f"{name or 'X'}.astype('float32')"
        raise refused(f"is an array of Python objects, which are never unpickled; send {remedy}", name)
    return dtype, shape, fortran


def _array(name: str, spec: ArraySpec, stream: IO[bytes], member_bytes: int) -> Array:
    dtype, shape, fortran = _header(name, stream)
    if dtype.kind == "S" and "U" in spec.types:
        raise refused(f"is of bytes without an encoding; send {name}.astype(str)", name)
    if dtype.kind not in spec.types or dtype.names or dtype.itemsize == 0:
        raise refused(f"is an array of {dtype}, which is not accepted{_TYPE_REMEDIES.get(dtype.kind, '')}", name)
    if dtype.kind == "U" and spec.longest is not None and dtype.itemsize > 4 * spec.longest:
        raise refused(f"has texts longer than {spec.longest} characters", name)
    if len(shape) != spec.dimensions or min(shape) < 0:
        wanted = "one dimension" if spec.dimensions == 1 else "two dimensions, documents and features"
        raise refused(f"must have {wanted}, not {len(shape)}", name)
    count, start = int(np.prod(shape, dtype=object)), stream.tell()
    if start + count * dtype.itemsize != member_bytes:
        raise refused(f"its header says {count} numbers, its size differs", name)
    # with one dimension, one row or one column both orders are the same
    return Array(name, dtype, shape, fortran and min(shape) > 1 and len(shape) > 1, stream, start)


def ids_of(array: Array, n_rows: int) -> list[str]:
    """The next ids; integers are ids as decimals."""
    return texts_of(array, n_rows) if array.dtype.kind == "U" else list(map(str, array.read(n_rows).tolist()))


def labels_of(arrays: Arrays, n_rows: int) -> list[Label | None]:
    """The next labels of arrays that may have some."""
    if "labels" not in arrays:
        return [None] * n_rows
    if arrays["labels"].dtype.kind == "f":
        numbers = arrays["labels"].read(n_rows)
        known = numbers[~np.isnan(numbers)]
        wrong = known[(known != np.floor(known)) | (np.abs(known) > LARGEST_WHOLE)]
        if len(wrong):
            raise refused(
                f"{wrong[0]!s} is not an integer; among floats NaN is unlabeled, all others must be whole numbers",
                "labels",
            )
        return [None if number != number else int(number) for number in numbers.tolist()]
    if "labeled" not in arrays:
        return [text or None for text in texts_of(arrays["labels"], n_rows)]
    labels, labeled = arrays["labels"].read(n_rows).tolist(), arrays["labeled"].read(n_rows).tolist()
    return [label if known else None for label, known in zip(labels, labeled, strict=True)]


def classes_of(arrays: Arrays) -> list[Label]:
    """The names of the classes of indicators, none without these; raises InvalidDocuments."""
    if ("indicators" in arrays) != ("classes" in arrays):
        raise refused("are the names of the columns of indicators, and neither goes without the other", "classes")
    if "indicators" not in arrays:
        return []
    if "labels" in arrays:
        raise refused("stands beside indicators, which are all labels", "labels")
    if arrays["indicators"].fortran:
        raise refused("is stored column by column; store numpy.ascontiguousarray(indicators)", "indicators")
    n_classes = arrays["indicators"].shape[1]
    if arrays["classes"].length != n_classes:
        raise refused(f"has {arrays['classes'].length} names, but indicators has {n_classes} columns", "classes")
    names = arrays["classes"]
    return [*texts_of(names, n_classes)] if names.dtype.kind == "U" else names.read(n_classes).tolist()


def lists_of(arrays: Arrays, classes: Sequence[Label], n_rows: int) -> LabelLists:
    """The next labels of documents that may have several."""
    numbers = arrays["indicators"].read(n_rows * len(classes)).reshape(n_rows, len(classes))
    if not np.isin(numbers, [0, 1]).all():
        raise refused("must be 0 or 1: whether a class applies", "indicators")
    labeled = arrays["labeled"].read(n_rows).tolist() if "labeled" in arrays else [True] * n_rows
    given = [
        [classes[column] for column in np.flatnonzero(row).tolist()] if known else None
        for row, known in zip(numbers, labeled, strict=True)
    ]
    return LabelLists(given, [None] * n_rows)


def texts_of(array: Array, n_rows: int) -> list[str]:
    """The next strings; raises InvalidDocuments for strings that are not Unicode."""
    try:
        texts: list[str] = array.read(n_rows).tolist()
        "".join(texts).encode()
    except (ValueError, UnicodeError) as error:
        raise refused("has characters that are not Unicode", array.name) from error
    return texts


SLICE_ENTRIES = 1 << 16
"""Entries that are moved at a time."""


class Entries(NamedTuple):
    """Some entries of a matrix: all arrays of shape (n_entries,)."""

    rows: NDArray[np.int64]
    columns: NDArray[np.uint32]
    values: NDArray[np.float32]


class Compressed(NamedTuple):
    """A whole matrix by row; its arrays may lie in files."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: NDArray[np.float32]


ReadEntries = Callable[[], Iterator[Entries]]
"""Reads all entries from the first on; called twice."""


def into_rows(
    read: ReadEntries, shape: tuple[int, int], n_entries: int, reading: Reading
) -> Generator[SparseRows, None, Compressed]:
    """The matrix by row. Entries of a row keep the order in which they come.

    For each slice it yields no rows, so that the caller may stop there.
    """
    n_rows, n_features = shape
    ends = _storage(reading, np.int64, n_rows + 2)
    indices, values = (_storage(reading, dtype, n_entries) for dtype in (np.uint32, np.float32))
    for _ in grouped(read, ends, (indices, values)):
        yield SparseRows.empty(0, n_features)
    return Compressed(ends[:-1], indices, values)


def summed(indptr: NDArray[np.int64], indices: NDArray[np.uint32], values: NDArray[np.float32]) -> Compressed:
    """The rows with repeated entries added up, as coordinates mean them, and the columns of each row in order."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((indices, rows))
    rows, indices, values = rows[order], indices[order], values[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (indices[1:] != indices[:-1])
    starts = np.flatnonzero(first)
    added = np.add.reduceat(values, starts) if len(starts) else values
    kept = np.concatenate([[0], np.cumsum(np.bincount(rows[starts], minlength=len(indptr) - 1))])
    return Compressed(kept.astype(np.int64), indices[starts], added.astype(np.float32))


def checked_places(array: Array, numbers: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Numbers of rows or columns; raises InvalidDocuments unless they lie from 0 to ``most`` - 1."""
    if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < most):
        raise refused(f"must lie from 0 to {most - 1}", array.name)
    return numbers.astype(np.int64)


def _storage(reading: Reading, dtype: type, count: int) -> NDArray[Any]:
    file = reading.spool()
    if file is not None and count:
        return mapped(file, dtype, count)
    reading.reserve(count * np.dtype(dtype).itemsize)
    return np.zeros(count, dtype)


def side_by_side(one: Iterator[Rows], other: Iterator[Rows]) -> Iterator[Rows]:
    """The documents, each with the parts of both. Slices without rows are passed on: after each the caller may stop.

    Both streams are read to their ends. They must have equally many rows in all.
    """
    rows: Rows | None = None
    for left in other:
        if not left.n_rows:
            yield left
        while left.n_rows:
            while rows is None or not rows.n_rows:
                rows = next(one)
                if not rows.n_rows:
                    yield rows
            count = min(rows.n_rows, left.n_rows)
            yield PartRows({**parts_of(rows.between(0, count)), **parts_of(left.between(0, count))})
            rows, left = rows.between(count, rows.n_rows), left.between(count, left.n_rows)
    yield from one
