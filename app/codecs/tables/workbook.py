"""Workbooks of Excel (``.xlsx``): the first sheet with a row below its first, read as the CSV that it would be saved
as.

- Cells are text as a person sees it, up to the format of numbers: 3 and not 3.0, dates as 2026-11-25. A formula has the
  value that the workbook was saved with, an error is an empty cell.
- The first row with anything in it has the names of the columns, as in csv.py; titles may stand above it. Empty rows
  are no documents.

calamine, compiled code, reads them: only the child of ``app.codecs.tables.child`` loads it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import IO, Any

from app.codecs.base import Format, Reading, check_limit
from app.codecs.tables.cells import MOST_TITLES, Header, Row, batch_of, header_of, listed, titles_above
from app.codecs.tables.child import ChildDecoder
from core.errors import InvalidDocuments, invalid_documents, refused
from storage.repositories.datasets import Batch

_CHARACTERS = 1 << 22
"""characters of a batch, at which it ends"""
_DIGITS = ".15g"
"""format of numbers: Excel keeps 15 digits, so that .1 + .2 is .3"""
_MOST_ROWS = 1 << 20
"""rows of a sheet of Excel at most"""
_REMEDY = "have HALFMOON_MAX_DOCUMENT_BYTES raised"

Numbered = tuple[int, Row]
"""A row that is not empty, after its number in the sheet."""


def read_workbook(file: IO[bytes], reading: Reading) -> Iterator[tuple[Batch, Header]]:
    """The documents of a workbook, some rows at a time, and the columns of its sheet.

    Raises InvalidDocuments, and LimitExceeded.
    """
    from python_calamine import CalamineError, PasswordError, SheetVisibleEnum, load_workbook

    try:
        with load_workbook(file) as workbook:
            titles = [each.name for each in workbook.sheets_metadata if each.visible == SheetVisibleEnum.Visible]
            for title in titles:
                sheet = workbook.get_sheet_by_name(title)
                check_limit(sheet.total_height, f"rows in the sheet {title!r}", _MOST_ROWS)
                texts = (list(map(_text, cells)) for cells in sheet.iter_rows())
                rows = ((number, row) for number, row in enumerate(texts, 1) if any(row))
                first = list(islice(rows, MOST_TITLES + 1))
                above = titles_above([row for _, row in first], reading) if first else 0
                if len(first) > above + 1:
                    yield from _documents(titles, title, first[: above + 1], chain(first[above + 1 :], rows), reading)
                    return
    except PasswordError:
        raise refused("the workbook is encrypted; save it without a password") from None
    except CalamineError as error:
        raise refused(f"this is no workbook that can be read, or one cut short: {error}") from None
    raise refused("no sheet of the workbook has a row below the names of its columns, which are in the first row")


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).upper()
    return format(cell, _DIGITS) if isinstance(cell, int | float) else str(cell)


def _documents(
    titles: Sequence[str], title: str, head: Sequence[Numbered], rows: Iterable[Numbered], reading: Reading
) -> Iterator[tuple[Batch, Header]]:
    *above, first = head
    try:
        header = header_of(first[1], reading, [row for _, row in above])
    except InvalidDocuments as error:
        located = [each._replace(detail=f"{_where(title, [first], 0)}: {each.detail}") for each in error.faults]
        raise invalid_documents(located) from None
    if len(titles) > 1:
        others = listed([each for each in titles if each != title])
        header = header._replace(notes=[*header.notes, f"the sheet {title!r} is read, and not {others}"])
    position = 0
    for part in _parts(title, rows, reading.bounds.document_bytes):
        where = partial(_where, title, part)
        yield batch_of([row for _, row in part], header, position, where), header
        position += len(part)


def _parts(title: str, rows: Iterable[Numbered], longest: int) -> Iterator[list[Numbered]]:
    """The rows of the batches. Raises LimitExceeded for a row that is longer than a document may be."""
    part: list[Numbered] = []
    size = 0
    for number, row in rows:
        text = "".join(row)
        check_limit(len(text.encode()), f"bytes in row {number} of the sheet {title!r}", longest, _REMEDY)
        part.append((number, row))
        size += len(text)
        if size > _CHARACTERS:
            yield part
            part, size = [], 0
    if part:
        yield part


def _where(title: str, rows: Sequence[Numbered], place: int) -> str:
    return f"row {rows[place][0]} of the sheet {title!r}"


FORMAT = Format(
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    lambda reading: ChildDecoder(reading, "workbook"),
    {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "A workbook of Excel, of which the first sheet with a row below its first is read, "
            "as the CSV that it would be saved as.",
        }
    },
    compressed=True,
    has_columns=True,
    endings=("xlsx",),
)
