"""Rows of Arrow and Parquet files: the columns that csv.py lists, whichever the request names.

pyarrow reads them, and a damaged file may end its process: only the child of ``app.codecs.tables.child`` does so.
"""

from collections.abc import Collection, Iterator
from math import isfinite
from typing import IO, Any

import pyarrow as pa
from pyarrow import compute, ipc, types
from pyarrow.parquet import ParquetFile, read_metadata

from app.codecs.base import LARGEST_WHOLE, Bounds, Column, Reading
from app.codecs.tables.cells import Header, batch_of_columns, header_of, listed
from app.codecs.tables.child import FileKind
from core.errors import MAX_FAULTS, Fault, invalid_documents, refused
from storage.errors import LimitExceeded
from storage.repositories.datasets import Batch, ExtraFields

_ROWS = 1024
"""rows of a batch"""
_TEXT_BYTES = 1 << 24
"""bytes of texts of a batch, if all are as long as the longest"""
_WHOLE, _LISTS = (
    "a column of texts or integers",
    "a column of lists of texts or integers, or of texts between separators",
)
_KINDS: dict[Column, str] = {
    **{"text": "a column of texts", "label": _WHOLE, "id": _WHOLE},
    **{"labels": _LISTS, "not": _LISTS, "weight": "a column of numbers"},
}
_MAGIC = b"ARROW1\0\0"
_CELL_BYTES = 16
"""bytes that a cell counts at least"""


def read_rows(file: IO[bytes], kind: FileKind, reading: Reading) -> Iterator[tuple[Batch, Header]]:
    """The documents of a file, some rows at a time, and the columns of the table.

    Raises InvalidDocuments, LimitExceeded, and MemoryError where the file takes more than this process may have.
    """
    header: Header | None = None
    position = 0
    try:
        lists = {reading.columns.get("labels", "labels"), reading.columns.get("not", "not")}
        for batch in _parquet(file, lists) if kind == "parquet" else _stream(file):
            # a stream may have any offsets; unchecked, they would read the memory of this process
            batch.validate(full=True)
            header = header or _without_nested(header_of(batch.schema.names, reading), batch.schema)
            read = (header.places, header.indicators, header.votes, header.kept)
            places = [place for each in read for place in each.values()]
            longest = sum(_longest(batch.column(place), position, reading.bounds) for place in places)
            step = max(1, min(_ROWS, _TEXT_BYTES // longest))
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                yield _documents(part, header, position), header
                position += part.num_rows
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        detail = str(error).partition("\n")[0]
        raise refused(f"this is no Arrow or Parquet file that can be read, or one cut short: {detail}") from None


def _parquet(file: IO[bytes], lists: Collection[str]) -> Iterator[Any]:
    metadata = read_metadata(file)
    schema = metadata.schema.to_arrow_schema()
    texts = [field.name for field in schema if _is_text(field.type)]
    nested = {
        field.name: field.type if types.is_list(field.type) or types.is_large_list(field.type) else pa.list_(field.type)
        for field in schema
        if not _is_flat(field.type) and not (field.name in lists and _is_list(field.type))
    }
    parquet = ParquetFile(file, metadata=metadata, read_dictionary=texts)
    flat = [name for name in schema.names if name not in nested] if nested else None
    for batch in parquet.iter_batches(batch_size=_ROWS, use_threads=False, columns=flat):
        if nested:
            # in place of nested columns, a row of which may be as long as memory, others that hold nothing
            nothing = [pa.nulls(batch.num_rows, kind) for kind in nested.values()]
            names = [*batch.schema.names, *nested]
            batch = pa.RecordBatch.from_arrays([*batch.columns, *nothing], names=names)
        yield batch


def _stream(file: IO[bytes]) -> Iterator[Any]:
    """The batches of a stream, or of a file, which is a stream between two marks.

    The footer of a file, which may refer to anything, is not used.
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        file.seek(0)
    yield from ipc.open_stream(file)


def _longest(texts: Any, position: int, bounds: Bounds) -> int:
    """Bytes of the longest of some texts, at least _CELL_BYTES.

    A dictionary has each text once, however many rows refer to it.
    """
    each = texts.dictionary if types.is_dictionary(texts.type) else texts
    if _is_list(each.type):
        return int(compute.max(compute.list_value_length(each)).as_py() or 1) * _longest(
            each.flatten(), position, bounds
        )
    longest = int(compute.max(compute.binary_length(each)).as_py() or 1) if _is_text(each.type) else 1
    if longest > bounds.document_bytes:
        where = f"bytes in document number {position + 1} or one after it"
        raise LimitExceeded(where, bounds.document_bytes, "have HALFMOON_MAX_DOCUMENT_BYTES raised")
    return max(longest, _CELL_BYTES)


def _documents(batch: Any, header: Header, position: int) -> Batch:
    columns = {column: _values(batch.column(place), column) for column, place in header.places.items()}
    texts = columns.pop("text")
    missing = [row for row, text in enumerate(texts) if text is None][:MAX_FAULTS]
    if missing:
        raise invalid_documents(
            [Fault(position + row, "text", "is null; a document without text has an empty one") for row in missing]
        )
    if "id" in columns:
        columns["id"] = [None if id is None else str(id) for id in columns["id"]]
    votes = {voter: _values(batch.column(place), "label") for voter, place in header.votes.items()}
    indicators = {label: _flags(batch.column(place), label) for label, place in header.indicators.items()}
    kept = [_kept_values(batch.column(place)) for place in header.kept.values()]
    fields = ExtraFields(list(header.kept), list(zip(*kept, strict=True))) if kept and batch.num_rows else None
    return batch_of_columns(texts, columns, votes, indicators, fields, header.separator, position)


def _is_text(kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _values(array: Any, column: Column) -> list[Any]:
    """The values of a column as Python has them, NaN and empty texts as None where they are no text and no weight.

    Raises InvalidDocuments.
    """
    kind = _kind_of(array.type)
    if column in ("labels", "not") and _is_list(kind):
        return [
            None if each is None else ["" if label is None else label for label in each] for each in array.to_pylist()
        ]
    if column == "weight" and types.is_floating(kind):
        return list(array.to_pylist())
    whole = column != "text" and (types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))
    if not _is_text(kind) and not whole:
        raise refused(f"is of {kind}; it must be {_KINDS[column]}", column)
    if column == "text":
        return list(array.to_pylist())
    return [
        _integer(value, column) if isinstance(value, float) else None if value == "" else value
        for value in array.to_pylist()
    ]


def _flags(array: Any, label: str) -> list[Any]:
    """The values of a column that says whether a label applies; raises InvalidDocuments."""
    if not _is_flat(array.type):
        raise refused(f"is of {array.type}; it must be a column of 0 and 1, or true and false", label)
    return [None if value == "" else value for value in array.to_pylist()]


def _kept_values(array: Any) -> list[Any]:
    """The values of a column as JSON has them: dates and decimals as text, NaN as None."""
    values = (array.cast(pa.string()) if _is_written(_kind_of(array.type)) else array).to_pylist()
    return [None if isinstance(value, float) and not isfinite(value) else value for value in values]


def _without_nested(header: Header, schema: Any) -> Header:
    """The header without the columns of lists and structures: a few bytes of them may decode to all of memory."""
    kinds = schema.types
    nested = {name: None for name, place in header.kept.items() if not _is_flat(kinds[place])}
    if not nested:
        return header
    note = f"columns that are left out, since they hold neither texts, numbers nor dates: {listed(list(nested))}"
    return header._replace(
        kept={name: place for name, place in header.kept.items() if name not in nested}, notes=[*header.notes, note]
    )


def _kind_of(kind: Any) -> Any:
    return kind.value_type if types.is_dictionary(kind) else kind


def _is_written(kind: Any) -> bool:
    """Whether values of this type are kept as text."""
    return bool(types.is_temporal(kind) or types.is_decimal(kind))


def _is_flat(kind: Any) -> bool:
    kind = _kind_of(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind)
    return bool(number or _is_text(kind) or _is_written(kind))


def _is_list(kind: Any) -> bool:
    """Whether a column has lists of labels."""
    return (types.is_list(kind) or types.is_large_list(kind)) and any(
        holds(_kind_of(kind.value_type)) for holds in (_is_text, types.is_integer, types.is_null)
    )


def _integer(value: float, column: Column) -> int | None:
    """An integer that is a float, since tables have floats where some are missing."""
    if value != value:
        return None
    if value != int(value) or abs(value) > LARGEST_WHOLE:
        raise refused(f"{value} is a float with a fraction; it must be {_KINDS[column]}", column)
    return int(value)
