"""The labels of a job as a table: the lines of JSON that the job has stored, written as CSV while they are sent."""

import csv
import io
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import msgspec

from app.errors import NotAcceptable
from workers.contract import Label

NDJSON, CSV, PARQUET = "application/x-ndjson", "text/csv", "application/vnd.apache.parquet"
_BLOCK_LINES = 2000


class _Line(msgspec.Struct):
    """A stored line: see LabeledDocument."""

    id: str
    label: Label
    score: float
    probability: float | None


_decoder = msgspec.json.Decoder(_Line)


def as_table(path: Path) -> Iterator[bytes]:
    """The table in blocks, the names of its columns first. Memory is that of a block."""
    yield (",".join(_Line.__struct_fields__) + "\n").encode()
    with path.open("rb") as lines:
        while block := list(islice(lines, _BLOCK_LINES)):
            table = io.StringIO()
            csv.writer(table, lineterminator="\n").writerows(map(msgspec.structs.astuple, _decoder.decode_lines(b"".join(block))))
            yield table.getvalue().encode()


def write_parquet(path: Path, file: IO[bytes]) -> None:
    """Write the table as Parquet. Memory is that of a block. Raises NotAcceptable where the extra arrow is not installed."""
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise NotAcceptable("Parquet needs the extra arrow in the gateway: pip install 'halfmoon[arrow]'") from None
    with path.open("rb") as lines:
        blocks = iter(lambda: _decoder.decode_lines(b"".join(islice(lines, _BLOCK_LINES))), [])
        first = next(blocks, [])
        label = pa.int64() if first and isinstance(first[0].label, int) else pa.string()
        kinds: dict[str, Any] = {"id": pa.string(), "label": label, "score": pa.float64(), "probability": pa.float64()}
        schema = pa.schema(list(kinds.items()))
        with ParquetWriter(file, schema) as writer:
            for block in chain([first] if first else [], blocks):
                writer.write_batch(pa.record_batch([[getattr(line, name) for line in block] for name in kinds], schema=schema))
