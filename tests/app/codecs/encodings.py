"""Bodies of each of the wire formats: the same documents, arrays, tables, archives of files."""

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
from pyarrow import ipc

Documents = Sequence[dict[str, Any]]
Files = Mapping[str, bytes]


def as_json(documents: Documents) -> bytes:
    return json.dumps({"documents": list(documents)}).encode()


def as_ndjson(documents: Documents) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def as_svmlight(documents: Documents) -> bytes:
    def line(document: dict[str, Any]) -> str:
        pairs = zip(document["indices"], document["values"], strict=True)
        return " ".join([str(document.get("label") or 0), *(f"{index + 1}:{value!r}" for index, value in pairs)]) + "\n"

    return "".join(map(line, documents)).encode()


def arrays_of(documents: Documents) -> dict[str, Any]:
    lengths = [len(document["indices"]) for document in documents]
    indices = np.array([index for document in documents for index in document["indices"]], np.int32)
    labels = [document.get("label") for document in documents]
    return {
        "indptr": np.cumsum([0, *lengths]),
        "indices": indices,
        "data": np.array([value for document in documents for value in document["values"]]),
        "shape": np.array([len(documents), int(indices.max()) + 1]),
        "labels": np.array([label or 0 for label in labels]),
        "labeled": np.array([label is not None for label in labels]),
    }


def dense_of(documents: Documents, dtype: Any = np.float64, order: Literal["C", "F"] = "C") -> dict[str, Any]:
    """The same with a dense matrix in place of the CSR arrays."""
    arrays = arrays_of(documents)
    matrix = np.zeros(arrays["shape"], dtype, order)
    for row, document in enumerate(documents):
        matrix[row, document["indices"]] = document["values"]
    return {"X": matrix, "labels": arrays["labels"], "labeled": arrays["labeled"]}


def npz(arrays: dict[str, Any], *, compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def scipy_npz(matrix: Any) -> bytes:
    """The matrix as SciPy writes it."""
    file = io.BytesIO()
    scipy.sparse.save_npz(file, matrix)
    return file.getvalue()


def as_npz(documents: Documents) -> bytes:
    return npz(arrays_of(documents))


ENCODERS = {
    "application/json": as_json,
    "application/x-ndjson": as_ndjson,
    "text/x-svmlight": as_svmlight,
    "application/x-npz": as_npz,
}


def as_npy(array: Any) -> bytes:
    """The array as numpy.save writes it."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def parquet(columns: Mapping[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), file, **options)
    return file.getvalue()


def arrow_stream(
    columns: Mapping[str, Any],
    options: ipc.IpcWriteOptions | None = None,
    write: Callable[..., ipc.RecordBatchStreamWriter] = ipc.new_stream,
) -> bytes:
    file, table = io.BytesIO(), pa.table(dict(columns))
    with write(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return file.getvalue()


def arrow_file(columns: Mapping[str, Any], options: ipc.IpcWriteOptions | None = None) -> bytes:
    return arrow_stream(columns, options, ipc.new_file)


def zip_of(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The same bytes at any time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def tar_of(files: Files, format: int = tarfile.GNU_FORMAT) -> bytes:
    """An archive that ends with the two empty blocks, without padding."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as archive:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
        return file.getvalue() + bytes(1024)
