"""``application/x-npz``: a zip of .npy arrays as SciPy's ``save_npz`` writes a CSR matrix. Nothing is ever unpickled.

``indptr``, ``indices``, ``data``, ``shape``; optionally ``labels`` (strings, "" for unlabeled; or integers beside a boolean array ``labeled``)
and ``ids`` (strings). A zip has its directory at its end, so the body is spooled first and then read side by side, a slice of each array at a time.
"""

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from app.codecs.base import MAX_TEXT, Bounds
from core.errors import Fault, InvalidDocuments
from core.rows import MAX_FEATURES, SparseRows
from workers.contract import Label
from workers.datasets import Batch
from workers.errors import LimitExceeded

_SLICE_ROWS = 8192
_SLICE_NONZEROS = 1 << 18
_REQUIRED = ("indptr", "indices", "data", "shape")
_OPTIONAL = ("labels", "labeled", "ids")
_IGNORED = ("format", "_is_array")
_KINDS = {"indptr": "iu", "indices": "iu", "data": "fiub", "shape": "iu", "labels": "iuU", "labeled": "b", "ids": "U"}
_HEADER_BYTES = 4096
_DIRECTORY_BYTES = 64 << 10
_ZIP64_BYTES = 1 << 32


class NpzDecoder:
    """Spools to ``spool`` (a file of the staging area), or keeps a small body in memory if there is none, then yields slices."""

    def __init__(self, spool: IO[bytes] | None, bounds: Bounds) -> None:
        self._spool = spool
        self._kept: list[bytes] = []
        self._bounds = bounds

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        if self._spool is None:
            self._kept.append(data)
        else:
            self._spool.write(data)
        return iter(())

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        # a body that came in one piece is neither copied by joining nor by reading from memory
        spool = io.BytesIO(b"".join(self._kept)) if self._spool is None else self._spool
        _check_directory(spool)
        try:
            with zipfile.ZipFile(spool) as archive, ExitStack() as stack:
                yield from self._slices(_open_arrays(archive, self._bounds, stack))
        except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError, OSError) as error:
            raise _refused("", f"not a readable zip of arrays: {error}") from error

    def _slices(self, arrays: "dict[str, _Array]") -> Iterator[Batch]:
        n_rows, n_features = _check_shapes(arrays, self._bounds)
        done, edge = 0, arrays["indptr"].take(1).astype(np.int64)
        if edge[0] != 0:
            raise _refused("indptr", "does not start with 0")
        while done < n_rows:
            ends = _ascending(edge, arrays["indptr"].take(min(_SLICE_ROWS, n_rows - done)))
            for start, stop in _pieces(ends, self._bounds.document_bytes):
                yield _batch(arrays, ends[start : stop + 1], n_features)
            done += len(ends) - 1
            edge = ends[-1:]
        if edge[0] != arrays["data"].length:
            raise _refused("indptr", f"ends with {edge[0]}, but there are {arrays['data'].length} values")
        for array in arrays.values():
            array.close()


class _Array(NamedTuple):
    """One member of the zip: what its header says, and the numbers after it."""

    name: str
    dtype: np.dtype[Any]
    length: int
    stream: IO[bytes]

    def take(self, count: int) -> NDArray[Any]:
        """The next numbers; zip and array both say how many there are, and they have been compared."""
        data = self.stream.read(count * self.dtype.itemsize)
        if len(data) != count * self.dtype.itemsize:
            raise _refused(self.name, "has fewer numbers than its header says")
        return np.frombuffer(data, self.dtype)

    def close(self) -> None:
        """Read to the end, which is where the zip's checksum is compared."""
        if self.stream.read(1):
            raise _refused(self.name, "has more numbers than indptr accounts for")


def _refused(name: str, detail: str) -> InvalidDocuments:
    return InvalidDocuments(f"{name}: {detail}" if name else detail, [Fault("", name, detail)])


def _check_directory(spool: IO[bytes]) -> None:
    """Refuse a directory of millions of members before it is read into memory; only a file beyond 4 GiB needs a zip64 one."""
    size = spool.seek(0, 2)
    tail_bytes = min(size, 22 + (1 << 16))
    spool.seek(size - tail_bytes)
    tail = spool.read(tail_bytes)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(tail):
        raise _refused("", "not a zip, or cut short")
    zip64 = b"PK\x06\x07" in tail[max(0, end - 20) : end]
    if size < _ZIP64_BYTES and (zip64 or int.from_bytes(tail[end + 12 : end + 16], "little") > _DIRECTORY_BYTES):
        raise _refused("", "its directory is too large for the few arrays it may hold")


def _open_arrays(archive: zipfile.ZipFile, bounds: Bounds, stack: ExitStack) -> dict[str, _Array]:
    members = _members(archive)
    if sum(info.file_size for info in members.values()) > bounds.unpacked_bytes:
        raise LimitExceeded("bytes in the unpacked body", bounds.unpacked_bytes)
    missing = [name for name in _REQUIRED if name not in members]
    if missing:
        raise _refused(missing[0], f"the array {missing[0]} is missing; needed are {', '.join(_REQUIRED)}")
    if "format" in members:
        _check_format(archive, members["format"])
    arrays = {}
    for name in (*_REQUIRED, *_OPTIONAL):
        if name in members:
            arrays[name] = _array(name, stack.enter_context(archive.open(members[name])), members[name].file_size)
    return arrays


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename or name not in (*_REQUIRED, *_OPTIONAL, *_IGNORED) or name in members:
            known = ", ".join((*_REQUIRED, *_OPTIONAL))
            raise _refused(name[:MAX_TEXT], f"unexpected member {info.filename[:MAX_TEXT]!r}; known are the arrays {known}, each once")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _refused(name, "is compressed otherwise than by deflate")
        members[name] = info
    return members


def _check_format(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    with archive.open(info) as stream:
        dtype, shape = _header("format", stream)
        text = stream.read(16).rstrip(b"\0").replace(b"\0", b"")
    if dtype.kind not in "SU" or shape != () or text != b"csr":
        raise _refused("format", "the matrix must be in CSR format")


def _header(name: str, stream: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    readers: dict[tuple[int, int], Callable[..., Any]] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        reader = readers[npy.read_magic(stream)]
        shape, fortran, dtype = reader(stream, max_header_size=_HEADER_BYTES)
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise _refused(name, "is not a .npy array of format 1.0 or 2.0") from error
    if dtype.hasobject:
        raise _refused(name, "is an array of Python objects, which are never unpickled")
    if fortran:
        raise _refused(name, "is in Fortran order; write it in C order")
    return dtype, shape


def _array(name: str, stream: IO[bytes], member_bytes: int) -> _Array:
    dtype, shape = _header(name, stream)
    if dtype.kind not in _KINDS[name] or dtype.names or dtype.itemsize == 0:
        raise _refused(name, f"is an array of {dtype}, which it cannot be")
    if dtype.kind == "U" and dtype.itemsize > 4 * MAX_TEXT:
        raise _refused(name, f"has texts longer than {MAX_TEXT} characters")
    if len(shape) != 1 or shape[0] < 0:
        raise _refused(name, f"must have one dimension, not {len(shape)}")
    if stream.tell() + shape[0] * dtype.itemsize != member_bytes:
        raise _refused(name, f"its header says {shape[0]} numbers, its size differs")
    return _Array(name, dtype, shape[0], stream)


def _check_shapes(arrays: dict[str, _Array], bounds: Bounds) -> tuple[int, int]:
    if arrays["shape"].length != 2:
        raise _refused("shape", "must be two numbers, documents and features")
    n_rows, n_features = arrays["shape"].take(2).tolist()
    if not (n_rows >= 0 and 0 <= n_features <= MAX_FEATURES):
        raise _refused("shape", f"must be at least 0, and features at most {MAX_FEATURES}")
    if n_rows > bounds.documents:
        raise LimitExceeded("documents", bounds.documents)
    if arrays["data"].length > bounds.nonzeros:
        raise LimitExceeded("nonzeros", bounds.nonzeros)
    if "labeled" in arrays and "labels" not in arrays:
        raise _refused("labeled", "is only of use beside integer labels")
    if "labels" in arrays and (arrays["labels"].dtype.kind != "U") != ("labeled" in arrays):
        raise _refused("labeled", "must be given with integer labels, and only with them")
    expected = {"indptr": n_rows + 1, "indices": arrays["data"].length, "labels": n_rows, "labeled": n_rows, "ids": n_rows}
    for name, length in expected.items():
        if name in arrays and arrays[name].length != length:
            raise _refused(name, f"has length {arrays[name].length}, not {length}")
    return n_rows, n_features


def _ascending(edge: NDArray[np.int64], following: NDArray[Any]) -> NDArray[np.int64]:
    ends = np.concatenate([edge, following.astype(np.int64)])
    if (np.diff(ends) < 0).any():
        raise _refused("indptr", "must never fall")
    return ends


def _pieces(ends: NDArray[np.int64], document_bytes: int) -> Iterator[tuple[int, int]]:
    """Spans of rows with few enough nonzeros to be held at once; a row larger than a document may be is refused."""
    most = max(1, document_bytes // 8)
    if (np.diff(ends) > most).any():
        raise LimitExceeded("nonzeros in a document", most)
    start = 0
    while start < len(ends) - 1:
        stop = int(np.searchsorted(ends, ends[start] + _SLICE_NONZEROS, "right")) - 1
        stop = min(max(stop, start + 1), len(ends) - 1)
        yield start, stop
        start = stop


def _batch(arrays: dict[str, _Array], ends: NDArray[np.int64], n_features: int) -> Batch:
    n_rows, n_nonzeros = len(ends) - 1, int(ends[-1] - ends[0])
    indices = arrays["indices"].take(n_nonzeros)
    if n_nonzeros and (int(indices.min()) < 0 or int(indices.max()) >= n_features):
        raise _refused("indices", f"must lie from 0 to {n_features - 1}")
    with np.errstate(over="ignore"):
        values = arrays["data"].take(n_nonzeros).astype(np.float32, copy=False)
    # signed numbers that are not negative are the same bytes unsigned
    narrow = indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32, copy=False)
    rows = SparseRows(ends - ends[0], narrow, values, n_features)
    return Batch(rows, _labels(arrays, n_rows), _texts(arrays["ids"], n_rows) if "ids" in arrays else None)


def _labels(arrays: dict[str, _Array], n_rows: int) -> list[Label | None]:
    if "labels" not in arrays:
        return [None] * n_rows
    if "labeled" not in arrays:
        return [text or None for text in _texts(arrays["labels"], n_rows)]
    labels, labeled = arrays["labels"].take(n_rows).tolist(), arrays["labeled"].take(n_rows).tolist()
    return [label if known else None for label, known in zip(labels, labeled, strict=True)]


def _texts(array: _Array, n_rows: int) -> list[str]:
    try:
        texts: list[str] = array.take(n_rows).tolist()
        "".join(texts).encode()
    except (ValueError, UnicodeError) as error:
        raise _refused(array.name, "has characters that are not Unicode") from error
    return texts
