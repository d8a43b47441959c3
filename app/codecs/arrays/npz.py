"""``application/x-npz``: a zip file of .npy arrays, as NumPy's ``savez`` and SciPy's ``save_npz`` write it. Nothing is
unpickled.

- A CSR matrix: ``indptr``, ``indices``, ``data`` and ``shape``; a CSC matrix of the same names, and ``format``, which
  says so.
- Or a COO matrix: ``row``, ``col``, ``data`` and ``shape``; entries that are given several times are added up.
- Or ``text``: strings.
- A dense matrix ``X`` of shape (n_documents, n_features), alone or beside one of these; its zeros are dropped. Of
  several vectors of a document ``vectors.NAME``, each such a matrix.
- Optionally ``labels``: strings, "" for unlabeled; or integers, with a boolean array ``labeled``; or whole floats,
  NaN for unlabeled.
- Or, of documents that may have several labels, ``indicators`` of shape (n_documents, n_classes), 1 where a class
  applies, with the names of the ``classes``; optionally ``labeled``, false where the labels are not known.
- Optionally ``weights`` of the labels, and ``ids``: strings or integers.

A zip file has its directory at its end. So the body is first stored, then read in parallel, a slice of each array at a
time.
"""

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial, reduce
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from app.codecs.arrays.archive import (
    DIRECTORY_BYTES,
    SLICE_ENTRIES,
    Array,
    Arrays,
    ArraySpec,
    Entries,
    checked_places,
    classes_of,
    ids_of,
    into_rows,
    labels_of,
    lists_of,
    open_array,
    open_arrays,
    side_by_side,
    sparse_format,
    summed,
    texts_of,
)
from app.codecs.base import VECTOR_NAME, Bounds, Format, check_limit
from app.codecs.numbers import narrowed, rows_of
from app.codecs.transport.whole_body import WholeBodyDecoder, check_directory, zip_errors
from core.documents.kinds import DENSE, PartRows, Rows, TextRows, spans
from core.documents.rows import MAX_FEATURES, SparseRows
from core.errors import refused
from storage.errors import LimitExceeded
from storage.records import MAX_TEXT, Label
from storage.repositories.datasets import Batch

ReadEntries = Callable[[Arrays, int, int], Iterator[Entries]]
"""Reads all entries of a matrix of so many rows and features."""

_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_SLICE_ROWS = 8192
_SLICE_NONZEROS = 1 << 18
_SLICE_NUMBERS = 1 << 19
"""Numbers of a dense matrix that are read at a time; memory holds them several times."""
_SLICE_BYTES = 1 << 21
"""Bytes of texts that are read at a time, of which a character takes four."""
_TILE_BYTES = 8 << 20
"""Bytes of the columns of a dense matrix that are turned into rows at a time; memory holds them twice."""
_SPARSE = {"indptr": ArraySpec("iu"), "indices": ArraySpec("iu"), "data": ArraySpec("fiub"), "shape": ArraySpec("iu")}
_COORDINATES = {"row": ArraySpec("iu"), "col": ArraySpec("iu"), "data": _SPARSE["data"], "shape": _SPARSE["shape"]}
_DENSE = {"X": ArraySpec("fiub", 2)}
_NAMED = "vectors."
"""What the names of dense matrices begin with where a document has several vectors."""
_TEXT = {"text": ArraySpec("U", longest=None)}
_BESIDE = {
    **{"labels": ArraySpec("iufU"), "labeled": ArraySpec("b"), "ids": ArraySpec("iuU")},
    **{"indicators": ArraySpec("biuf", 2), "weights": ArraySpec("fiu")},
}
_CLASSES = {"classes": ArraySpec("iuU")}
_IGNORED = ("format", "_is_array")


class NpzDecoder(WholeBodyDecoder):
    """Yields batches of rows, when the body is whole."""

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        spool = self.body()
        if spool.read(len(_NPY)) == _NPY:
            raise refused("this is a .npy file, of one array; it is sent as application/x-npy")
        check_directory(spool, DIRECTORY_BYTES, "its directory is larger than that of a few arrays")
        with zip_errors("not a readable zip of arrays"), zipfile.ZipFile(spool) as archive, ExitStack() as stack:
            order = sparse_format(archive)
            names = sorted(name.removesuffix(".npy") for name in archive.namelist() if name.startswith(_NAMED))
            wrong = next((name for name in names if not VECTOR_NAME.match(name.removeprefix(_NAMED))), None)
            if wrong is not None:
                raise refused("the name of a vector has 1 to 64 letters, digits, _ or -", wrong[:MAX_TEXT])
            specs = _SPARSE | _COORDINATES | _DENSE | dict.fromkeys(names, _DENSE["X"]) | _TEXT | _BESIDE | _CLASSES
            arrays = open_arrays(archive, specs, _IGNORED, self.reading.bounds.decompressed_bytes, stack)
            classes = classes_of(arrays)
            # slices without rows are among them: after each the caller may stop
            for rows in reduce(side_by_side, self._streams(arrays, order)):
                yield _batch(arrays, rows, classes)
            for array in arrays.values():
                array.finish()

    def _streams(self, arrays: Arrays, order: str) -> Iterator[Iterator[Rows]]:
        """The documents by each of their parts alone."""
        dense = _dense_names(arrays)
        if not dense or any(name in arrays for name in (*_SPARSE, *_COORDINATES, *_TEXT)):
            if "text" in arrays:
                yield self._texts(arrays)
            elif order == "csc":
                yield self._whole_rows(arrays, _SPARSE, _column_entries)
            elif order == "coo" or not {"row", "col"}.isdisjoint(arrays):
                yield self._whole_rows(arrays, _COORDINATES, _coordinate_entries)
            else:
                yield self._sparse(arrays)
        for name in dense:
            yield self._dense(arrays, name)

    def _whole_rows(self, arrays: Arrays, specs: Mapping[str, ArraySpec], entries: ReadEntries) -> Iterator[Rows]:
        """The rows of a matrix that is stored by column or by coordinates, after slices without rows."""
        n_rows, n_features = _shape(arrays, specs, self.reading.bounds)
        n_entries = arrays["data"].length
        lengths = {"indptr": n_features + 1, **dict.fromkeys(("indices", "row", "col"), n_entries)}
        _check_lengths(arrays, lengths, n_rows)
        read = partial(entries, arrays, n_rows, n_features)
        whole = yield from into_rows(read, (n_rows, n_features), n_entries, self.reading)
        for done in range(0, len(whole.indptr) - 1, _SLICE_ROWS):
            ends = whole.indptr[done : done + _SLICE_ROWS + 1]
            for start, stop in _pieces(ends, _longest(self.reading.bounds)):
                first, last = int(ends[start]), int(ends[stop])
                rows = summed(ends[start : stop + 1] - first, whole.indices[first:last], whole.values[first:last])
                yield rows_of(rows.indptr, rows.indices, rows.values, n_features)

    def _sparse(self, arrays: Arrays) -> Iterator[Rows]:
        n_rows, n_features = _shape(arrays, _SPARSE, self.reading.bounds)
        _check_lengths(arrays, {"indptr": n_rows + 1, "indices": arrays["data"].length}, n_rows)
        for _, ends in _ends(arrays, n_rows):
            for start, stop in _pieces(ends, _longest(self.reading.bounds)):
                indptr = ends[start : stop + 1] - ends[start]
                indices = arrays["indices"].read(int(indptr[-1]))
                # viewed as unsigned, negative indices become larger than any feature
                narrow = indices.view(np.uint32) if indices.dtype == np.int32 else indices
                if len(narrow) and (
                    int(narrow.max()) >= n_features or (narrow.dtype.kind == "i" and int(narrow.min()) < 0)
                ):
                    raise refused(f"must lie from 0 to {n_features - 1}", "indices")
                yield rows_of(indptr, narrow, arrays["data"].read(len(narrow)), n_features)

    def _texts(self, arrays: Arrays) -> Iterator[Rows]:
        texts = arrays["text"]
        both = [name for name in (*_SPARSE, *_COORDINATES) if name in arrays]
        if both:
            raise refused(
                f"is given beside {', '.join(both)}; documents come as text or as a sparse matrix, each with or "
                "without X",
                "text",
            )
        _check_shape("text", texts.length, 0, self.reading.bounds)
        _check_lengths(arrays, {}, texts.length)
        if texts.dtype.itemsize > 4 * self.reading.bounds.document_bytes:
            raise LimitExceeded("bytes in a text", self.reading.bounds.document_bytes)
        for start, stop in _ranges(texts.length, max(1, _SLICE_BYTES // texts.dtype.itemsize)):
            yield TextRows.of(texts_of(texts, stop - start))

    def _dense(self, arrays: Arrays, name: str) -> Iterator[Rows]:
        n_rows, n_features = arrays[name].shape
        _check_shape(name, n_rows, n_features, self.reading.bounds)
        if n_rows and not n_features:
            raise refused(f"has {n_rows} documents without a single feature", name)
        check_limit(n_features, "numbers in a dense document", _longest(self.reading.bounds))
        _check_lengths(arrays, {}, n_rows)
        matrix, part = arrays[name], DENSE + name.removeprefix("X").removeprefix(_NAMED.removesuffix("."))
        if matrix.fortran:
            slices = self._transposed(matrix)
        else:
            spans = _ranges(n_rows, _slice_rows(n_features)) if n_features else iter(())
            slices = (
                matrix.read((stop - start) * n_features).reshape(stop - start, n_features) for start, stop in spans
            )
        for numbers in slices:
            # NaN is not zero: the check of all rows refuses it
            values = narrowed(numbers)
            kept = np.flatnonzero(values)
            indptr = np.zeros(len(values) + 1, np.int64)
            np.cumsum(np.count_nonzero(values, axis=1), out=indptr[1:])
            indices = (kept % n_features).astype(np.uint32)
            yield PartRows({part: SparseRows(indptr, indices, values.ravel()[kept], n_features)})

    def _transposed(self, matrix: Array) -> Iterator[NDArray[Any]]:
        """The rows of a matrix that is stored column by column, in slices. All of its numbers are read before the first
        slice.

        Time is linear in the numbers, whatever the shape: the columns are written as tiles of some rows and columns
        each, so that what a slice needs is read in few long pieces.
        """
        n_rows, n_features = matrix.shape
        n_columns = max(1, _TILE_BYTES // (n_rows * matrix.dtype.itemsize))
        tiles = list(_ranges(n_features, n_columns))
        spool = self.reading.spool()
        if spool is None:
            spool = io.BytesIO()
            self.reading.reserve(n_rows * n_features * matrix.dtype.itemsize)
        with spool:
            for start, stop in tiles:
                spool.write(matrix.read((stop - start) * n_rows).reshape(stop - start, n_rows).T.tobytes())
                # a slice without rows: the caller may stop here
                yield np.zeros((0, n_features), matrix.dtype)
            for first, last in _ranges(n_rows, _slice_rows(n_features)):
                yield np.concatenate([_tile(spool, matrix, tile, first, last) for tile in tiles], axis=1)


class NpyDecoder(NpzDecoder):
    """Yields batches of rows of a file that is the dense matrix alone."""

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        spool = self.body()
        if spool.read(len(_ZIP)) == _ZIP:
            raise refused("this is a zip file, as of numpy.savez; it is sent as application/x-npz")
        with zip_errors("not a readable zip of arrays"):
            matrix = open_array("X", _DENSE["X"], spool)
            for rows in self._dense({"X": matrix}, "X"):
                yield _batch({"X": matrix}, rows, [])
            matrix.finish()


def _column_entries(arrays: Arrays, n_rows: int, n_features: int) -> Iterator[Entries]:
    for name in ("indptr", "indices", "data"):
        arrays[name].rewind()
    for first, ends in _ends(arrays, n_features):
        if ends[-1] > arrays["data"].length:
            raise refused(f"goes to {ends[-1]}, but there are {arrays['data'].length} values", "indptr")
        for start in range(int(ends[0]), int(ends[-1]), SLICE_ENTRIES):
            places = np.arange(start, min(start + SLICE_ENTRIES, int(ends[-1])))
            columns = np.searchsorted(ends, places, "right") - 1 + first
            rows = checked_places(arrays["indices"], arrays["indices"].read(len(places)), n_rows)
            yield Entries(rows, columns.astype(np.uint32), narrowed(arrays["data"].read(len(places))))


def _ends(arrays: Arrays, count: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The first number of a slice of rows or columns, and where its entries begin and end.

    Raises InvalidDocuments for ends that decrease, and for a last one that is not the number of entries.
    """
    indptr, n_entries = arrays["indptr"], arrays["data"].length
    edge = indptr.read(1).astype(np.int64)
    if edge[0] != 0:
        raise refused("does not start with 0", "indptr")
    for first, stop in _ranges(count, _SLICE_ROWS):
        ends = np.concatenate([edge, indptr.read(stop - first).astype(np.int64)])
        if (np.diff(ends) < 0).any():
            raise refused("must not decrease", "indptr")
        yield first, ends
        edge = ends[-1:]
    if edge[0] != n_entries:
        raise refused(f"ends with {edge[0]}, but there are {n_entries} values", "indptr")


def _coordinate_entries(arrays: Arrays, n_rows: int, n_features: int) -> Iterator[Entries]:
    for name in ("row", "col", "data"):
        arrays[name].rewind()
    for start in range(0, arrays["data"].length, SLICE_ENTRIES):
        count = min(SLICE_ENTRIES, arrays["data"].length - start)
        rows = checked_places(arrays["row"], arrays["row"].read(count), n_rows)
        columns = checked_places(arrays["col"], arrays["col"].read(count), n_features)
        yield Entries(rows, columns.astype(np.uint32), narrowed(arrays["data"].read(count)))


def _shape(arrays: Arrays, specs: Mapping[str, ArraySpec], bounds: Bounds) -> tuple[int, int]:
    """Documents and features of a sparse matrix that has all these arrays and no others."""
    other = [name for name in (*_SPARSE, *_COORDINATES) if name in arrays and name not in specs]
    if other:
        raise refused(f"must be left out: {', '.join(specs)} are the whole matrix already", other[0])
    missing = [name for name in specs if name not in arrays]
    if missing:
        raise refused(
            f"the array {missing[0]} is missing; required are {', '.join(specs)}, or text or a dense X instead",
            missing[0],
        )
    if arrays["shape"].length != 2:
        raise refused("must be two numbers, documents and features", "shape")
    n_rows, n_features = arrays["shape"].read(2).tolist()
    check_limit(arrays["data"].length, "nonzeros", bounds.nonzeros)
    _check_shape("shape", n_rows, n_features, bounds)
    return n_rows, n_features


def _dense_names(arrays: Arrays) -> list[str]:
    """The dense matrices, in the order in which parts are stored."""
    return [name for name in arrays if name == "X" or name.startswith(_NAMED)]


def _check_shape(name: str, n_rows: int, n_features: int, bounds: Bounds) -> None:
    if not (n_rows >= 0 and 0 <= n_features <= MAX_FEATURES):
        raise refused(f"must be at least 0, and features at most {MAX_FEATURES}", name)
    check_limit(n_rows, "documents", bounds.documents)


def _check_lengths(arrays: Arrays, lengths: Mapping[str, int], n_rows: int) -> None:
    whole = "labels" in arrays and arrays["labels"].dtype.kind in "iu"
    if whole and "labeled" not in arrays:
        raise refused(
            "is required with integer labels: which of them count, numpy.ones(len(labels), bool) for all", "labeled"
        )
    if not whole and "labeled" in arrays and "indicators" not in arrays:
        raise refused(
            'is allowed only beside integer labels and indicators; among strings "" is unlabeled, among floats NaN',
            "labeled",
        )
    for name, length in {**lengths, **dict.fromkeys((*_BESIDE, *_dense_names(arrays)), n_rows)}.items():
        if name in arrays and arrays[name].length != length:
            raise refused(f"has length {arrays[name].length}, not {length}", name)


def _longest(bounds: Bounds) -> int:
    """Numbers of one document at most."""
    return max(1, bounds.document_bytes // 8)


def _pieces(ends: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Spans of rows that fit in memory; raises LimitExceeded for a row of more than ``most`` nonzeros."""
    if (np.diff(ends) > most).any():
        raise LimitExceeded("nonzeros in a document", most)
    return spans(ends, len(ends), _SLICE_NONZEROS)


def _slice_rows(n_features: int) -> int:
    """Rows of a dense matrix that are read at a time."""
    return min(_SLICE_ROWS, max(1, _SLICE_NUMBERS // n_features))


def _ranges(end: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, end)) for start in range(0, end, size))


def _tile(spool: IO[bytes], matrix: Array, columns: tuple[int, int], start: int, stop: int) -> NDArray[Any]:
    """Some rows of a tile, which has all rows of some columns, row by row."""
    first, last = columns
    n_columns = last - first
    spool.seek((first * matrix.length + start * n_columns) * matrix.dtype.itemsize)
    data = spool.read((stop - start) * n_columns * matrix.dtype.itemsize)
    return np.frombuffer(data, matrix.dtype).reshape(stop - start, n_columns)


def _batch(arrays: Arrays, rows: Rows, classes: Sequence[Label]) -> Batch:
    n_rows = rows.n_rows
    lists = lists_of(arrays, classes, n_rows) if "indicators" in arrays else None
    return Batch(
        rows,
        labels_of(arrays, n_rows),
        ids_of(arrays["ids"], n_rows) if "ids" in arrays else None,
        label_lists=lists,
        weights=arrays["weights"].read(n_rows).astype(np.float64) if "weights" in arrays else None,
    )


FORMAT = Format(
    "application/x-npz",
    NpzDecoder,
    {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "Arrays as numpy.savez writes them: a CSR, CSC or COO matrix as of scipy.sparse.save_npz "
            "(indptr, indices, data, shape; "
            "row, col, data, shape), or text (strings); a dense matrix X of shape (documents, features), whose "
            "zeros are dropped, or several, "
            "vectors.NAME, alone or beside one of these; optionally labels (strings, '' for unlabeled, or "
            "integers with a boolean array "
            "labeled, or whole floats, NaN for unlabeled) or indicators of shape (documents, classes), 1 where a "
            "class applies, with classes, their names; weights, and ids (strings or integers). Nothing is unpickled.",
        }
    },
    compressed=True,
    endings=("npz",),
)
NPY = Format(
    "application/x-npy",
    NpyDecoder,
    {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "A dense matrix as numpy.save writes it, a document a row, without labels.",
        }
    },
    endings=("npy",),
)
