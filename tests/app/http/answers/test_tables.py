"""Answers as tables: blocks, types, and texts that a spreadsheet would calculate."""

import csv
import io
from typing import Any

import pyarrow.parquet as pq
import pytest

from app.http import answers
from app.http.answers import Column, columns_beside, csv_blocks, write_parquet

COLUMNS = [Column("id", "text"), Column("n", "number"), Column("who", "text")]


def csv_of(*rows: tuple[Any, ...], exact: bool = False) -> list[str]:
    return b"".join(csv_blocks(COLUMNS, rows, exact=exact)).decode().splitlines()[1:]


FORMULAS = ["=1+2", "@sum(A1)", "+cmd|x", "-2+3", "\tx", "\n=1", "\nx", "  =1", "\u00a0=1", "\ufeff=1", "\uff1d1+2"]
FORMULAS += ["\uff0bx", "\uff0dx", "\uff20x", '=HYPERLINK("http://x")']


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_of_strangers_are_texts(text: str) -> None:
    """Also ids, labels and the names of columns, which may come with an archive or a table of theirs."""
    columns = [Column(text, "text"), Column("n", "number"), Column("who", "text")]
    for exact in (False, True):
        table = io.StringIO(b"".join(csv_blocks(columns, [(text, -1.5, text)], exact=exact)).decode(), newline="")
        wanted = text if exact else f"'{text}"
        assert list(csv.reader(table)) == [[wanted, "n", "who"], [wanted, "-1.5", wanted]]


@pytest.mark.parametrize("text", ["-3", "+4.5e-7", "-1,000.5", "a=b", "", "a - b"])
def test_numbers_and_other_texts_are_as_they_are(text: str) -> None:
    assert csv_of(("x", None, text)) == csv_of(("x", None, text), exact=True)


def test_values_of_any_kind() -> None:
    assert csv_of(("a", 1, True), ("b", 2, [1, "x"]), ("c", 3, None)) == ["a,1,true", 'b,2,"[1,""x""]"', "c,3,"]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_blocks(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(answers, "_BLOCK_ROWS", 2)
    rows = [(str(k), k / 2, {"k": k} if k else "=x") for k in range(n)]
    assert len(csv_of(*rows)) == n
    file = io.BytesIO()
    write_parquet(COLUMNS, rows, file)
    wanted = [{"id": id, "n": n, "who": who if isinstance(who, str) else f'{{"k":{id}}}'} for id, n, who in rows]
    assert pq.read_table(io.BytesIO(file.getvalue())).to_pylist() == wanted


def test_names_that_are_taken() -> None:
    assert [column.name for column in columns_beside(COLUMNS, ["when", "n"])] == [
        "id",
        "n",
        "who",
        "when",
        "fields.n",
    ]
