"""Workbooks for tests, written by hand: so they may also be what no program writes."""

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
DATE, TIME = 14, 22
"""built-in formats of numbers that are dates, and dates with a time"""
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"

Cell = str | float | bool | None | tuple[float, int]
"""A cell; a number with a format is a date, counted in days from 1899-12-30."""


def workbook(
    sheets: Mapping[str, str | Iterable[Sequence[Cell]]], hidden: Sequence[str] = (), strings: str = ""
) -> bytes:
    """A workbook of these sheets, of which each has rows or the XML of its data, and the XML of shared strings."""
    listed, related, files = "", "", {}
    for number, (title, rows) in enumerate(sheets.items(), 1):
        state = ' state="hidden"' if title in hidden else ""
        listed += f'<sheet name={quoteattr(title)} sheetId="{number}"{state} r:id="r{number}"/>'
        related += f'<Relationship Id="r{number}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        data = rows if isinstance(rows, str) else "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
        files[f"xl/worksheets/sheet{number}.xml"] = f"<worksheet {_MAIN}><sheetData>{data}</sheetData></worksheet>"
    related += f'<Relationship Id="s" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    related += f'<Relationship Id="t" Type="{_OFFICE}/sharedStrings" Target="sharedStrings.xml"/>'
    formats = "".join(f'<xf numFmtId="{number}"/>' for number in (0, DATE, TIME))
    files |= {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" Type="{_OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">{related}</Relationships>',
        "xl/styles.xml": f"<styleSheet {_MAIN}><cellXfs>{formats}</cellXfs></styleSheet>",
        "xl/sharedStrings.xml": f"<sst {_MAIN}>{strings}</sst>",
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _cell(cell: Cell) -> str:
    match cell:
        case None:
            return "<c/>"
        case bool():
            return f'<c t="b"><v>{int(cell)}</v></c>'
        case str():
            return f'<c t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
        case (days, format):
            return f'<c s="{(DATE, TIME).index(format) + 1}"><v>{days}</v></c>'
    return f"<c><v>{cell}</v></c>"
