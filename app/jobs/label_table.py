"""The labels of a job as a table: the lines of JSON that the job has stored, written as CSV while they are sent."""

import csv
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from workers.contract import Label

NDJSON, CSV = "application/x-ndjson", "text/csv"
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
