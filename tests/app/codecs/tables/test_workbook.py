"""Workbooks: cells as a person sees them, faults that name sheet and row, and bounds on those of strangers."""

from collections.abc import Mapping

import pytest

from app.codecs.base import Bounds, Decoder
from app.codecs.dispatch import body_decoder
from core.documents.kinds import TextRows
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from storage.repositories.datasets import Batch
from tests.app.codecs.tables.workbooks import DATE, TIME, XLSX, Cell, workbook

pytest.importorskip("python_calamine", reason="`make test` installs what reads workbooks")

BOUNDS = Bounds(10**8, 10**10, 10**6, 10**6, 10**5)


def decoded(body: bytes, query: Mapping[str, str] = {}, bounds: Bounds = BOUNDS) -> tuple[list[Batch], Decoder]:
    decoder = body_decoder({"content-type": XLSX}, bounds, query=query)
    return [*decoder.feed(body), *decoder.finish()], decoder


def texts_of(body: bytes, query: Mapping[str, str] = {}) -> list[str]:
    batches, _ = decoded(body, query)
    texts: list[str] = []
    for batch in batches:
        assert isinstance(batch.rows, TextRows)
        texts += batch.rows
    return texts


def test_cells_are_as_a_person_sees_them() -> None:
    rows: list[list[Cell]] = [
        ["id", "text", "label", "more"],
        [3.0, "a\nb <i> & c", "spam", 0.1 + 0.2],
        [],
        ["x", "\u05e9\u05dc\u05d5\u05dd", None, (45292, DATE)],
        [7, 12, True, (45292.5625, TIME)],
    ]
    [batch], decoder = decoded(workbook({"Mails": rows}))
    assert isinstance(batch.rows, TextRows)
    assert list(batch.rows) == ["a\nb <i> & c", "\u05e9\u05dc\u05d5\u05dd", "12"]
    assert (batch.ids, batch.labels) == (["3", "x", "7"], ["spam", None, "TRUE"])
    assert batch.fields is not None
    assert [value for [value] in batch.fields.values] == ["0.3", "2024-01-01", "2024-01-01 13:30:00"]
    assert list(decoder.warnings()) == ["columns that are kept beside the documents and not learned from: 'more'"]


def test_the_first_sheet_with_rows_that_is_not_hidden_is_read() -> None:
    sheets: dict[str, list[list[Cell]]] = {
        **{"Old": [["text"], ["old"]], "Notes": [["done"]], "Empty": []},
        "Mails": [["Mails of June"], [], [None, "text"], [1, "new"]],
    }
    batches, decoder = decoded(workbook(sheets, hidden=["Old"]))
    assert [text for batch in batches if isinstance(batch.rows, TextRows) for text in batch.rows] == ["new"]
    assert list(decoder.warnings()) == [
        "the names of the columns stand below 'Mails of June', which is left out",
        "the sheet 'Mails' is read, and not 'Notes', 'Empty'",
    ]


def test_columns_are_chosen_as_in_a_csv() -> None:
    rows: list[list[Cell]] = [
        ["who", "mail", "kinds", "vote:rule"],
        ["a", "x", "one;two", "one"],
        ["b", "y", "[]", None],
    ]
    query = {"text": "mail", "labels": "kinds", "id": "who"}
    [batch], _ = decoded(workbook({"S": rows}), query)
    assert batch.label_lists is not None
    assert batch.label_lists[0] == [["one", "two"], []]
    assert (batch.ids, batch.votes) == (["a", "b"], [{"rule": "one"}, {}])


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (workbook({"S": [["text"]]})[:-40], "no workbook that can be read"),
        (b"text,label\na,b\n", "no workbook that can be read"),
        (workbook({"S": [["text"]]}), "no sheet of the workbook has a row below the names of its columns"),
        (
            workbook({"S": [["Report"], ["text", "label"]]}),
            "no sheet of the workbook has a row below the names of its columns",
        ),
        (workbook({"S": [[], ["body"], ["a"]]}), "row 2 of the sheet 'S': no column is named 'text'"),
        (
            workbook({"S": [["text", "weight"], ["a", 2], [], ["b", "heavy"]]}),
            "document number 2: weight: row 4 of the sheet 'S': 'heavy' is no number",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(body: bytes, wanted: str) -> None:
    with pytest.raises(InvalidDocuments) as caught:
        decoded(body)
    assert wanted in caught.value.detail


def test_a_row_that_is_longer_than_a_document_may_be() -> None:
    with pytest.raises(LimitExceeded, match="bytes in row 3 of the sheet 'S'"):
        decoded(workbook({"S": [["text"], ["a"], ["x" * 1001]]}), bounds=Bounds(10**8, 10**10, 1000, 10**6, 10**5))


def cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


@pytest.mark.parametrize(
    ("data", "strings"),
    [
        (f'<row r="1">{cell("A1", "text")}</row><row r="1048576">{cell("XFD1048576", "x")}</row>', ""),
        (f'<row r="4294967295">{cell("A4294967295", "text")}</row>', ""),
        (
            f"<row>{cell('A1', 'text')}</row>" + '<row><c t="s"><v>0</v></c></row>' * 200_000,
            f"<si><t>{'x' * 30_000}</t></si>",
        ),
        (f"<!DOCTYPE x [<!ENTITY e 'text'>]><row>{cell('A1', '&e;')}</row>", ""),
    ],
    ids=["a cell far away", "a row beyond all", "a string that is repeated", "an entity"],
)
def test_a_small_file_takes_neither_memory_nor_time(data: str, strings: str) -> None:
    body = workbook({"S": data}, strings=strings)
    assert len(body) < 50_000
    with pytest.raises((InvalidDocuments, LimitExceeded)):
        decoded(body)
    assert texts_of(workbook({"S": [["text"], ["as before"]]})) == ["as before"]
