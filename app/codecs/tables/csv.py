"""``text/csv`` and ``text/tab-separated-values``: a document a row, after a row with the names of the columns, above
which titles may stand: rows of one cell.

- The columns ``text``, ``label``, ``id`` and ``weight`` are read, or those that the query parameters of these names
  give; an empty one but of text stands for no column. In place of ``label`` there may be ``labels`` and ``not``, with
  labels between separators, ``[]`` where none applies, or columns for a label each, with 0 or 1. Columns ``vote:NAME``
  have the votes of a voter. Others are kept beside the documents, and not learned from.
- An empty label is none. An empty id stands for the position of its document. A row of empty cells is no document.
- Fields in double quotes may hold separators, line ends and doubled quotes (RFC 4180). The separator of a CSV file is
  the comma, semicolon, tab or bar of which its first row has most; that may be the line ``sep=;`` for Excel.
"""

import csv
import io
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from app.codecs.base import Decoder, Format, Reading
from app.codecs.tables.cells import MOST_TITLES, Header, Row, batch_of, header_of, titles_above
from app.codecs.transport.encodings import Filtered, WithoutByteOrderMark, with_charset
from core.errors import Fault, refuse, refused
from storage.errors import LimitExceeded
from storage.repositories.datasets import Batch

_COMMA, _TAB = ",;\t|", "\t"
_QUOTED = re.compile('"[^"]*"')
_LONGEST_FIELD = 2**31 - 1
"""Characters of a field that the reader takes; the bound of a document is checked here."""
_CUT = "unexpected end of data"
"""Message of the reader for a quoted field that does not end."""
_STEPS_BACK = 64
"""Line ends at which the text may be cut, from the last one on."""
_UTF8_BYTES = 4
"""Bytes of a character at most."""


class TableDecoder(Decoder):
    """Cuts the text where a row ends, which the quotes decide, and parses many rows at a time."""

    def __init__(self, reading: Reading, separators: str) -> None:
        csv.field_size_limit(_LONGEST_FIELD)
        self._longest = reading.bounds.document_bytes
        self._reading = reading
        self._separators = separators
        self._separator = separators[0]
        self._header: Header | None = None
        self._rest = bytearray()
        self._wanted = 1 << 14
        """Bytes at which the rest is parsed again: first as many as titles and the names of the columns below them may
        have, then twice an unfinished row, so that time stays linear."""
        self._line = 1
        self._position = 0

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        self._rest += data
        if len(self._rest) >= self._wanted:
            yield from self._parse(_end_of_rows(self._rest), last=False)
        if len(self._rest) > self._longest:
            yield from self._parse(self._rest.rfind(b"\n") + 1, last=False)
            if len(self._rest) > self._longest:
                raise self._too_long(self._line)

    def finish(self) -> Iterator[Batch]:
        """See Decoder. The last row need not end with a line feed."""
        yield from self._parse(len(self._rest), last=True)
        if self._header is None:
            raise refused("the table is empty; its first row has the names of the columns, such as text,label")

    def warnings(self) -> Sequence[str]:
        """See Decoder: which columns are not learned from."""
        return self._header.warnings if self._header else ()

    def _parse(self, end: int, *, last: bool) -> Iterator[Batch]:
        """The documents of the rows before ``end``; a row that goes on behind it stays in the rest."""
        block, self._rest = bytes(self._rest[:end]), self._rest[end:]
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            line = self._line + block.count(b"\n", 0, error.start)
            raise refused(
                f"line {line}: the byte 0x{block[error.start]:02x} is not UTF-8; save the table in UTF-8, or say what "
                "it is in, as by Content-Type: text/csv; charset=windows-1252"
            ) from None
        rows, left = self._rows(text, last)
        whole = text[: len(text) - len(left)]
        too_long = self._too_long_row(whole) if len(whole) > self._longest // _UTF8_BYTES else None
        batch = self._batch(rows[:too_long], whole)
        if batch is not None:
            self._position += batch.rows.n_rows
            yield batch
        if too_long is not None:
            raise self._too_long(self._line_of(whole, too_long))
        self._line += whole.count("\n")
        self._rest = bytearray(left.encode()) + self._rest
        self._wanted = 2 * len(self._rest)

    def _reader(self, text: str) -> Any:
        if self._header is None:
            lines = text.lstrip("\r\n").split("\n", MOST_TITLES)[:MOST_TITLES]
            wanted, between = self._reading.columns.get("text", "text").lower(), f"[{self._separators}]"
            # titles above the names of the columns have no separator, or others
            named = (
                each for each in lines if wanted in [cell.strip(' "\r') for cell in re.split(between, each.lower())]
            )
            rows = [_QUOTED.sub("", line) for line in (next(named, lines[0]), lines[0])]
            self._separator = max(self._separators, key=lambda each: [row.count(each) for row in rows])
        return csv.reader(io.StringIO(text, newline=""), delimiter=self._separator, strict=True)

    def _rows(self, text: str, last: bool) -> tuple[list[Row], str]:
        """The rows of the text, and the text of an unfinished last row."""
        rows: list[Row] = []
        reader = self._reader(text)
        try:
            rows.extend(reader)
        except csv.Error as error:
            line = self._line_of(text, len(rows))
            if str(error) != _CUT:
                raise refused(f"line {line}: {error}; inside a quoted field a quote is doubled") from None
            if last:
                raise refused(f"line {line}: a quote that opens in this row is never closed") from None
            return rows, "".join(islice(io.StringIO(text, newline=""), line - self._line, None))
        return rows, ""

    def _line_of(self, text: str, row: int) -> int:
        """Number of the first line of a row of the text."""
        reader = self._reader(text)
        deque(islice(reader, row), maxlen=0)
        return self._line + int(reader.line_num)

    def _too_long_row(self, text: str) -> int | None:
        """The first row that is longer than a document may be."""
        ends = [0]
        for line in io.StringIO(text, newline=""):
            ends.append(ends[-1] + len(line.encode()))
        reader, start = self._reader(text), 0
        for row, _ in enumerate(reader):
            end = ends[reader.line_num]
            if end - start - text.endswith("\n") > self._longest:
                return row
            start = end
        return None

    def _batch(self, rows: list[Row], text: str) -> Batch | None:
        """The documents of these rows, which begin the text; the first row of all is the header."""
        skipped, rows = 0, [row if any(row) else [] for row in rows]
        if self._header is None:
            skipped = next((number for number, row in enumerate(rows, 1) if row and not row[0].startswith("sep=")), 0)
            if not skipped:
                return None
            titles = rows[skipped - 1 :][: titles_above(rows[skipped - 1 :], self._reading)]
            skipped += len(titles)
            self._header = header_of(rows[skipped - 1], self._reading, titles)
        header, documents = self._header, rows[skipped:]
        if not set(map(len, documents)) <= {header.width}:
            refuse(self._width_faults(header, documents, text, skipped))
            documents = [row for row in documents if row]
        if not documents:
            return None

        def where(row: int) -> str:
            places = (place for place, each in enumerate(rows[skipped:], skipped) if each)
            return f"line {self._line_of(text, next(islice(places, row, None)))}"

        return batch_of(documents, header, self._position, where)

    def _width_faults(self, header: Header, rows: list[Row], text: str, skipped: int) -> Iterator[Fault]:
        """Rows of another length than the header; a line without anything is no row."""
        position = self._position
        for number, row in enumerate(rows, skipped):
            if row and len(row) != header.width:
                yield Fault(
                    position,
                    "",
                    f"line {self._line_of(text, number)}: {len(row)} fields, but the first row has {header.width}; "
                    "a field that has the separator or a line end must be in quotes",
                )
            position += bool(row)

    def _too_long(self, line: int) -> LimitExceeded:
        return LimitExceeded(
            f"bytes in the row that begins in line {line}",
            self._longest,
            "have HALFMOON_MAX_DOCUMENT_BYTES raised, or look for a quote that is never closed",
        )


def _end_of_rows(text: bytearray) -> int:
    """Where the last row probably ends: at the last line end with an even number of quotes before it, of some."""
    end = last = text.rfind(b"\n") + 1
    odd = text.count(b'"', 0, end) % 2
    for _ in range(_STEPS_BACK):
        if not odd or not end:
            break
        before = text.rfind(b"\n", 0, end - 1) + 1
        odd ^= text.count(b'"', before, end) % 2
        end = before
    return last if odd or not end else end


_ROWS = (
    "the first row names the columns. By default text, label or labels, id, weight and vote:NAME are read, and others "
    "kept beside the document; an empty label is none, of several [] says that none applies"
)


def _format(
    media_type: str, separators: str, description: str, example: str, aliases: tuple[str, ...], endings: tuple[str, ...]
) -> Format:
    """A format of rows of fields between these separators."""

    def decoder(reading: Reading) -> Decoder:
        return with_charset(
            Filtered(WithoutByteOrderMark(), TableDecoder(reading, separators)), reading.parameters.get("charset")
        )

    return Format(
        media_type,
        decoder,
        {"schema": {"type": "string", "description": description}, "example": example},
        aliases=aliases,
        has_columns=True,
        endings=endings,
    )


CSV = _format(
    "text/csv",
    _COMMA,
    f"A document a row; {_ROWS}. The separator is a comma, semicolon, tab or bar.",
    'id,text,label\nd1,"The goalkeeper saved the penalty, again.",sport\nd2,A late goal.,\n',
    ("application/csv", "text/x-csv"),
    ("csv",),
)
TSV = _format(
    "text/tab-separated-values",
    _TAB,
    f"A document a row, its fields separated by tabs; {_ROWS}.",
    "text\tlabel\nThe goalkeeper saved the penalty.\tsport\nA late goal.\t\n",
    ("text/tsv", "text/x-tsv"),
    ("tsv", "tab"),
)
