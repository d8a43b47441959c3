"""Tables: rows that are read, rows that are refused, and that neither depends on where the text was cut."""

import itertools
from collections.abc import Sequence

import pytest

from app.codecs.base import Bounds
from app.codecs.dispatch import body_decoder
from core.documents.kinds import TextRows
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded

BOUNDS = Bounds(body_bytes=10**7, decompressed_bytes=10**7, document_bytes=500, documents=1000, nonzeros=1000)
CSV = "text/csv"
KEPT = "columns that are kept beside the documents and not learned from: "
Documents = list[tuple[str, object, str | None]]


def read(body: bytes, media_type: str = CSV, cuts: Sequence[int] = (), **query: str) -> tuple[Documents, list[str]]:
    """Text, label and id of the documents, and the warnings."""
    decoder = body_decoder({"content-type": media_type}, BOUNDS, query=query)
    edges = [0, *cuts, len(body)]
    batches = [batch for start, stop in itertools.pairwise(edges) for batch in decoder.feed(body[start:stop])]
    batches += decoder.finish()
    found: Documents = []
    for batch in batches:
        assert isinstance(batch.rows, TextRows)
        found += zip(batch.rows, batch.labels, batch.ids or [None] * batch.rows.n_rows, strict=True)
    return found, list(decoder.warnings())


TABLE = b'id,text,label,when\nd1,"late, ""again""\nand again", sport,9\n\n,b,,\n,,,\nd3,\xc3\xa9,politics  ,1'
ROWS: Documents = [('late, "again"\nand again', "sport", "d1"), ("b", None, None), ("é", "politics", "d3")]


def test_quotes_line_ends_and_empty_fields() -> None:
    assert read(TABLE) == (ROWS, [KEPT + "'when'"])
    assert read(TABLE.replace(b"\n", b"\r\n"))[0][1:] == ROWS[1:]


def test_every_cut_gives_the_same_rows() -> None:
    for cut in range(len(TABLE)):
        assert read(TABLE, cuts=[cut])[0] == ROWS
    assert read(TABLE, cuts=range(len(TABLE)))[0] == ROWS


@pytest.mark.parametrize("cut", [[], range(60)])
def test_titles_stand_above_the_names_of_columns(cut: Sequence[int]) -> None:
    """Rows of one cell, above one that names the column of the texts; elsewhere the first row has the names."""
    wanted: Documents = [("a", "x", None)]
    assert read(b"Report of June,,\n,,\nText,label,\na,x,\n", cuts=cut) == (
        wanted,
        ["the names of the columns stand below 'Report of June', which is left out"],
    )
    assert (
        read(b"Report of June,,\n,,\nnr,Text,label\n1,a,x\n", cuts=cut)[0]
        == read(b"sep=;\nReport;\nbody;label\na;x\n", cuts=cut, text="body")[0]
        == read(b'Report\n"Text";label\r\na;x\n', cuts=cut)[0]
        == read(b"Report of May, June\n\ntext\tlabel\na\tx\n", cuts=cut)[0]
        == wanted
    )
    assert read(b"text\na; b\n", cuts=cut)[0] == [("a; b", None, None)]
    assert read(b"text,\na,x\ntext,b\n", cuts=cut)[0] == [("a", None, None), ("text", None, None)]
    with pytest.raises(InvalidDocuments, match="the first row has 'Body'"):
        read(b"Body\na\ntext\nb\n", cuts=cut)
    with pytest.raises(InvalidDocuments, match="the first row has 'Report', 'May'"):
        read(b"Report,May\ntext,label\na,x\n", cuts=cut)


def test_separators() -> None:
    wanted: Documents = [("a, b", "x", None)]
    assert (
        read(b"text;label\na, b;x\n")[0]
        == read(b"text|label\na, b|x\n")[0]
        == read(b"text\tlabel\na, b\tx\n")[0]
        == wanted
    )
    assert read(b"text\tlabel\na, b\tx\n", "text/tab-separated-values")[0] == wanted
    assert read(b"sep=;\r\ntext;label\r\na, b;x\r\n")[0] == wanted


def test_columns_by_query() -> None:
    table = b"Ticket,Body,Topic,text\n7,hello,x,no\n"
    assert read(table, text="Body", label="Topic", id="Ticket")[0] == [("hello", "x", "7")]
    assert read(b"Text,LABEL\na,b\n")[0] == [("a", "b", None)]
    assert read(b"id,text,label\n7,a,b\n", label="", id="") == ([("a", None, None)], [KEPT + "'id', 'label'"])


def test_other_encodings() -> None:
    wanted: Documents = [("Käse", None, None)]
    for charset in ("windows-1252", "utf-16", "latin-1", '"utf-8"'):
        body = "text\nKäse\n".encode(charset.strip('"'))
        assert read(body, f"text/csv; charset={charset}", cuts=range(len(body)))[0] == wanted


def test_a_column_that_may_be_misspelt_is_named() -> None:
    assert read(b"text,lable\na,b\n")[1][0] == "no column is named 'label'; did you mean 'lable'?"


REFUSED = {
    "nothing": (b"", "the table is empty; its first row has the names of the columns"),
    "blank lines": (b"\n\n", "the table is empty"),
    "no text": (
        b"body,topic\na,b\n",
        "no column is named 'text'; the first row has 'body', 'topic'; say which column it is by ?text=NAME",
    ),
    "text misspelt": (b"txt\na\n", "did you mean 'txt'?"),
    "twice": (b"text,text\na,b\n", "names the column 'text' twice"),
    "too few fields": (b"text,label\na,b\n\nc\n", "document number 2: line 4: 1 fields, but the first row has 2"),
    "too many fields": (
        b"text,label\na,b,c\n",
        "line 2: 3 fields, but the first row has 2; a field that has the separator",
    ),
    "a quote that stays open": (
        b'text,label\nb,c\n"a,b\nc,d\n',
        "line 3: a quote that opens in this row is never closed",
    ),
    "a quote within": (b'text\n"a"b\n', "line 2: ',' expected after"),
    "not UTF-8": (
        b"text\nok\nK\xe4se\n",
        "line 3: the byte 0xe4 is not UTF-8; save the table in UTF-8, or say what it is in",
    ),
    "a workbook": (b"PK\x03\x04abcd", "save the table as CSV"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_are_refused(name: str) -> None:
    body, detail = REFUSED[name]
    for cuts in ([], list(range(len(body)))):
        with pytest.raises(InvalidDocuments) as refusal:
            read(body, cuts=cuts)
        assert detail in str(refusal.value)


def test_a_row_may_be_too_long() -> None:
    for body in (b"text\nok\n" + b"x" * 501 + b"\nok\n", b'text\nok\n"' + b"\n" * 501):
        for cuts in ([], list(range(len(body)))):
            with pytest.raises(LimitExceeded, match=r"500 bytes in the row that begins in line 3"):
                read(body, cuts=cuts)
    assert len(read(b"text\nok\n" + b"x" * 500 + b"\nok\n")[0]) == 3


def test_an_odd_quote_inside_a_field_cuts_nothing_off() -> None:
    """The guess where rows end counts quotes; a quote within an unquoted field misleads it, and the reader has the last
    word.
    """
    body = b"text,label\n" + b'a 5" disk,x\n' * 300 + b'"quoted\nfield",y\n' * 300
    assert len(read(body, cuts=range(0, len(body), 97))[0]) == 600
