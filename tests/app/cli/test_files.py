"""Commands from files to files, against a gateway; those that need a worker are part of ``tests/e2e``."""

import json
import logging
from pathlib import Path

import pytest

from app.cli import files
from app.cli.commands import main
from tests.app.conftest import Gateway, publish, publish_several, text_model

WRONG = {
    "cut.csv": b'text,label\n"late,sport\n',
    "odd.ndjson": b'{"text": "late"}\n{"text": 5}\n',
    "odd.json": b'{"documents": [{"text": "late", "id": "x"}, {"text": 5}, {"text": 5}]}',
    "cut.parquet": b"PAR1",
    "wide.csv": "text\nlate\n".encode("utf-16"),
}
VECTORS = '{"indices": [1], "label": "yes"}\n{"indices": [0], "label": "no"}\n'


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "vectors.ndjson"
    path.write_text(VECTORS)
    return str(path)


def at(gateway: Gateway) -> list[str]:
    return ["--url", f"http://127.0.0.1:{gateway.port}"]


def test_predictions_go_into_a_file(gateway: Gateway, tmp_path: Path, file: str) -> None:
    publish(gateway.store, calibrated=True)
    assert main(["predict", "news", file, "--out", str(tmp_path / "out.csv"), *at(gateway)]) == 0
    assert [line.split(",")[:2] for line in (tmp_path / "out.csv").read_text().splitlines()] == [
        ["id", "label"],
        ["0", "yes"],
        ["1", "no"],
    ]
    assert main(["predict", "news:1", file, "--out", str(tmp_path / "out.ndjson"), *at(gateway)]) == 0
    assert [json.loads(line)["label"] for line in (tmp_path / "out.ndjson").read_text().splitlines()] == ["yes", "no"]
    table = tmp_path / "named.ndjson"
    table.write_text('{"ticket": 7, "indices": [1], "x": 1}\n')
    assert (
        main(
            [
                "predict",
                "news",
                str(table),
                "--id",
                "ticket",
                "--extra",
                "ignore",
                "--out",
                str(tmp_path / "out2.csv"),
                *at(gateway),
            ]
        )
        == 0
    )
    assert (tmp_path / "out2.csv").read_text().startswith("id,label,probability\n7,yes,")
    publish(gateway.store, "texts", model=text_model())
    for name, content, text in (
        ("new.csv", 'text\n"late, again"\n', '"late, again"'),
        ("new.ndjson", '{"text": "late, again"}\n', '"late, again"'),
        ("new.csv", "text\n=1+1\n", "'=1+1"),  # with which a table would count
    ):
        (tmp_path / name).write_text(content)
        assert main(["predict", "texts", str(tmp_path / name), "--out", str(tmp_path / "out2.csv"), *at(gateway)]) == 0
        assert (tmp_path / "out2.csv").read_text().startswith(f"id,text,label,probability\n0,{text},")
    (tmp_path / "out2.csv").unlink()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", "out"))) == [
        "out.csv",
        "out.ndjson",
    ]


@pytest.mark.usefixtures("version")
def test_an_evaluation(gateway: Gateway, tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "news", file, "--page", str(tmp_path / "page.html"), *at(gateway)]) == 0
    assert "error 0.000" in capsys.readouterr().out
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_a_table_is_submitted(gateway: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "Tickets, März v1.2.csv"
    table.write_text("body,topic,age\nlate,sport,1\nvote,politics,2\ncup,,3\n")
    arguments = [
        "train",
        str(table),
        "--text",
        "body",
        "--label",
        "topic",
        "--option",
        "labels_drawn=random",
        "--encoder",
        "none",
        *at(gateway),
    ]
    assert main([*arguments, "--other", "rest"]) == 1
    assert "other: names what is not of the one labeled class" in capsys.readouterr().err
    assert main(arguments) == 0
    printed = capsys.readouterr()
    job = gateway.client.get(f"/v1/jobs/{printed.out.split()[-1]}").json()
    assert (job["model_name"], job["options"]["labels_drawn"]) == ("Tickets-Marz-v1.2", "random")
    assert (job["encoder"], gateway.client.get("/v1/datasets").json()["datasets"][0]["name"]) == (None, table.stem)
    assert "warning: the model of Tickets, März v1.2 is called Tickets-Marz-v1.2: its name has letters" in printed.err
    assert "warning: columns that are kept beside the documents and not learned from: 'age'" in printed.err


def test_what_goes_wrong_is_a_line(
    gateway: Gateway, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        logging, "raiseExceptions", False
    )  # another test's handler may write to a stream that is closed by now
    (wrong := tmp_path / "wrong").mkdir()
    for name, content in WRONG.items():
        (wrong / name).write_bytes(content)
    for arguments, words in (
        (["predict", "news", file, *at(gateway)], "there is no model 'news'; the list of models has all (404"),
        (["predict", "news", file, "--url", "http://127.0.0.1:1"], "no service answers at http://127.0.0.1:1"),
        (["predict", "news/3", file, *at(gateway)], "there is no model version 'news/3'"),
        (["train", str(tmp_path / "none.csv"), *at(gateway)], "there is no file"),
        (["train", file, "--option", "C", *at(gateway)], "write NAME=VALUE"),
        (["train", str(tmp_path / "评论.csv"), *at(gateway)], "name the model of 评论 by --model"),
        (["train", file, "--encoder", "e5", *at(gateway)], "encoder: reads text, but the documents are vectors"),
        (["train", str(wrong / "cut.csv"), *at(gateway)], "cut.csv: line 2: a quote that opens in this row is never"),
        (
            ["train", str(wrong / "odd.ndjson"), *at(gateway)],
            "odd.ndjson: document number 2: text: line 2: must be a te",
        ),
        (["train", str(wrong / "odd.json"), *at(gateway)], "document number 2: text: must be a text, not an integer"),
        (["train", str(wrong / "cut.parquet"), *at(gateway)], "cut.parquet: this is no .parquet file that can be read"),
        (["train", str(wrong / "wide.csv"), *at(gateway)], "wide.csv: the text is in UTF-16"),
        (["train", file, "--algorithm", "tsvmm", *at(gateway)], "did you mean 'tsvm'?"),
    ):
        assert main(arguments) == 1
        printed = capsys.readouterr()
        assert printed.err.startswith(("halfmoon: ", "warning: "))
        assert words in printed.err
    assert (
        gateway.client.get("/v1/datasets").json()["datasets"] == []
    )  # those of a training that was refused are not kept


@pytest.mark.parametrize("command", ["train", "label", "predict", "evaluate", "watch", "doctor"])
def test_the_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"example: halfmoon {command} " in capsys.readouterr().out.replace("\n  ", " ")


def test_a_file_that_was_not_finished_is_removed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        files._write(tmp_path / "labels.csv", ("label",), ([1 / each] for each in (1, 0)))
    assert list(tmp_path.iterdir()) == []


def test_from_the_page_to_a_file_by_name(gateway: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """People's labels from the page are listed, written and trained on by the name of the data."""
    documents = [{"id": "a", "indices": [0], "label": "no"}, {"id": "b", "indices": [1]}, {"id": "c", "indices": [1]}]
    dataset = gateway.upload(documents, name="mails")["id"]
    given = {"annotations": [{"id": "1", "document": "b", "label": "yes", "by": "ann"}]}
    gateway.client.post(f"/v1/datasets/{dataset}/annotations", json=given)
    publish(gateway.store, calibrated=True)
    gateway.client.patch(f"/v1/datasets/{gateway.upload(documents, name='part')['id']}", json={"archived": True})
    assert main(["datasets", *at(gateway)]) == 0
    first, *others, last = (line.split() for line in capsys.readouterr().out.splitlines())
    assert "part" not in {name for _, name, *_ in others}
    assert (first, last) == (["dataset", "name", "documents", "labels"], [dataset, "mails", "3", "2"])
    assert main(["labels", "mails", "--model", "news", "--out", str(tmp_path / "out.csv"), *at(gateway)]) == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,label,by,predicted,probability"
    assert [line.split(",")[:4] for line in lines[1:]] == [
        ["a", "no", "", "no"],
        ["b", "yes", "ann", "yes"],
        ["c", "", "", "yes"],
    ]
    assert main(["train", "mails", "--annotations", "--algorithm", "svm", *at(gateway)]) == 0
    job = gateway.client.get("/v1/jobs").json()["jobs"][0]
    assert (job["dataset"], job["model_name"], job["annotations"]) == (dataset, "mails", 1)
    assert main(["labels", "males", *at(gateway)]) == 1
    assert "no dataset 'males'" in capsys.readouterr().err


def test_several_labels_stand_in_cells_that_tell_them_apart(
    gateway: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = [{"id": "a", "indices": [0, 1], "labels": ["corn", "rye"]}, {"id": "b", "indices": [1], "labels": []}]
    gateway.upload(documents, name="grain")
    publish_several(gateway.store, ["corn", "r;e"])
    out = [str(tmp_path / name) for name in ("out.csv", "out.ndjson")]
    assert main(["labels", "grain", "--out", out[0], *at(gateway)]) == 0
    assert Path(out[0]).read_text() == "id,labels,by\na,corn;rye,\nb,[],\n"
    assert main(["labels", "grain", "--model", "news", "--out", out[0], *at(gateway)]) == 1
    assert "';' cannot part the label 'r;e': write .ndjson" in capsys.readouterr().err
    assert main(["labels", "grain", "--model", "news", "--out", out[1], *at(gateway)]) == 0
    lines = [json.loads(line) for line in Path(out[1]).read_text().splitlines()]
    assert [line["predicted_labels"] for line in lines] == [["corn", "r;e"], ["r;e"]]
