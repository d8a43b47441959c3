"""`halfmoon doctor --data FILE`: the documents that it understands, and faults, without a service."""

import gzip
import os
import zipfile
from pathlib import Path

import pytest

from app.cli.commands import main

TABLE = "ticket,body,topic,when\nd1,late again,sport,2026\nd2,vote,politics,2025\nd3,cup,,\n"
COLUMNS = ["--text", "body", "--label", "topic", "--id", "ticket"]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HALFMOON_")]:
        monkeypatch.delenv(name)


def told(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> tuple[int, list[str]]:
    """The exit code, and the lines."""
    code = main(["doctor", "--data", str(path), *options])
    return code, [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_what_is_understood(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    assert told(capsys, path, *COLUMNS) == (
        0,
        [
            f"ok file {path} is read as text/csv, gzip",
            "ok documents 3 of text",
            "ok id 'd1', label 'sport': 'late again'",
            "ok id 'd2', label 'politics': 'vote'",
            "ok id 'd3', no label: 'cup'",
            "ok labels 2 in 2 classes: politics (1), sport (1)",
            "ok warning columns that are kept beside the documents and not learned from: 'when'",
            "ok warning class 'politics' has one labeled document",
            "ok warning class 'sport' has one labeled document",
        ],
    )


def test_an_archive(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("sport/a.txt", "cup")
    assert "ok labels 1 in 1 classes: sport (1)" in told(capsys, tmp_path / "t.zip")[1]


WRONG = {
    "a column": (
        "t.csv",
        TABLE,
        [],
        "FIX documents text: no column is named 'text'; the first row has 'ticket', 'body', 'topic', 'when'",
    ),
    "a line": (
        "t.csv",
        "text\na\nb,c\n",
        [],
        "FIX documents document number 2: line 3: 2 fields, but the first row has 1",
    ),
    "two lines": (
        "t.jsonl",
        '{"text":"a"}\n{"txt":"b"}\n{"text":7}\n',
        [],
        "FIX documents document number 3: text: line 3: ",
    ),
    "twice": (
        "t.jsonl",
        '{"id":"a","text":"a"}\n{"id":"a","text":"b"}\n',
        [],
        "FIX documents document 'a': id: is used twice",
    ),
    "extra": ("t.csv", "text,who\na,b\n", ["--extra", "refuse"], "FIX documents the table has the extra columns 'who'"),
    "an ending": ("t.xls", "x", [], "FIX file 't.xls': the end of the name says what a file is; known are .json"),
    "nothing": ("t.csv", "text\n", [], "FIX documents documents: there is none"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, content, options, wanted = WRONG[name]
    (tmp_path / file).write_text(content)
    code, lines = told(capsys, tmp_path / file, *options)
    assert code == 1
    assert any(line.startswith(wanted) for line in lines), lines


def test_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--data", "nothing.csv"]) == 1
    assert capsys.readouterr().err == "halfmoon: there is no file 'nothing.csv'\n"
