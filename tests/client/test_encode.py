"""Frames, lists, matrices and files become documents, with all that stands for nothing in them."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from halfmoon import InvalidData
from halfmoon.columns import Choice
from halfmoon.encode import Body, body_of, held
from halfmoon.labels import Labels, decode_lines
from halfmoon.records import Prediction

TEXTS = ["late, again", "a vote", "cup"]
WANTED = [
    {"text": "late, again", "label": "sport", "id": "7"},
    {"text": "a vote", "id": "8"},
    {"text": "cup", "label": "politics", "id": "9"},
]
COLUMNS = Choice("body", "topic", "ticket")


def joined(body: Body) -> bytes:
    return b"".join(body.chunks())


def sent(data: Any, choice: Choice = COLUMNS) -> list[dict[str, Any]]:
    body = body_of(data, choice)
    assert body.media_type == "application/x-ndjson"
    return [json.loads(line) for line in joined(body).splitlines()]


def columns(missing: Any) -> dict[str, Any]:
    return {"ticket": [7, 8, 9], "body": TEXTS, "topic": ["sport", missing, "politics"]}


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, ""], ids=["None", "NaN", "NA", "empty"])
def test_a_frame_of_pandas(missing: Any) -> None:
    frame = pd.DataFrame(columns(missing))
    assert sent(frame) == WANTED
    assert sent(frame.astype({"topic": "category" if missing is not None else "object"})) == WANTED


def test_other_frames(tmp_path: Path) -> None:
    assert (
        sent(pl.DataFrame(columns(None)))
        == sent(pl.LazyFrame(columns(None)))
        == sent(pa.table(columns(None)))
        == WANTED
    )
    pq.write_table(pa.table(columns(None)), tmp_path / "t.parquet")
    assert sent(tmp_path / "t.parquet") == WANTED


def test_columns_beside_the_documents(tmp_path: Path) -> None:
    when = pd.to_datetime(["2026-01-02", None, "2026-03-04"])
    frame = pd.DataFrame(columns(None) | {"when": when, "stars": [1.0, float("nan"), 3.5], "many": [[1], [2], [3]]})
    beside = [{"when": "2026-01-02T00:00:00", "stars": 1.0}, None, {"when": "2026-03-04T00:00:00", "stars": 3.5}]
    wanted = [line | ({"fields": fields} if fields else {}) for line, fields in zip(WANTED, beside, strict=True)]
    assert sent(frame, COLUMNS._replace(fields=["when", "stars"])) == wanted
    assert sent(frame) == WANTED
    assert sent(frame.to_dict("records"), COLUMNS._replace(fields=["when", "stars"])) == wanted
    frame.to_parquet(tmp_path / "t.parquet")
    assert sent(tmp_path / "t.parquet") == wanted
    assert sent(tmp_path / "t.parquet", COLUMNS._replace(extra="ignore")) == WANTED
    assert body_of(["a"], Choice(extra="keep")).query == {"extra": "keep"}


def test_labels_with_columns_beside_them() -> None:
    first = b'{"id":"a","label":"x","score":1.0,"probability":null,"fields":{"who":"Ada","score":3}}\n'
    second = b'{"id":"b","label":"y","score":2.0,"probability":0.5}\n'
    own: dict[str, list[Any]] = {"id": ["a", "b"], "label": ["x", "y"], "score": [1.0, 2.0], "probability": [None, 0.5]}
    assert Labels(decode_lines(first + second)).columns() == own | {"who": ["Ada", None], "fields.score": [3, None]}
    assert Labels(decode_lines(second)).columns() == {name: values[1:] for name, values in own.items()}


def test_labels_of_integers_with_gaps() -> None:
    assert [
        line.get("label") for line in sent(pd.DataFrame({"text": ["a", "b"], "label": [3.0, np.nan]}), Choice())
    ] == [3, None]
    frame = pd.DataFrame({"text": ["a", "b"], "label": pd.array([3, None], dtype="Int64")})
    assert [line.get("label") for line in sent(frame, Choice())] == [3, None]


def test_lists() -> None:
    assert sent(TEXTS, Choice(label=["sport", None, "politics"], id=[7, 8, 9])) == WANTED
    assert sent(iter(TEXTS), Choice()) == [{"text": text} for text in TEXTS]
    rows = [dict(zip(columns(None), row, strict=True)) for row in zip(*columns(None).values(), strict=True)]
    assert sent(rows) == WANTED
    assert sent([{"indices": [1], "label": np.int64(2)}], Choice()) == [{"indices": [1], "label": 2}]


def test_a_frame_is_sent_in_slices() -> None:
    frame = pd.DataFrame({"text": [f"text {number}" for number in range(12_345)]})
    chunks = list(body_of(frame, Choice()).chunks())
    assert len(chunks) == 3
    assert b"".join(chunks).count(b"\n") == 12_345


def arrays(data: Any, choice: Choice) -> dict[str, Any]:
    body = body_of(data, choice)
    assert body.media_type == "application/x-npz"
    assert joined(body) == joined(body)
    return dict(np.load(io.BytesIO(joined(body))))


def test_matrices() -> None:
    dense = np.arange(6.0).reshape(3, 2)
    found = arrays(dense, Choice(label=["a", None, "b"], id=[7, 8, 9]))
    assert found["X"].tolist() == dense.tolist()
    assert (found["labels"].tolist(), found["ids"].tolist()) == (["a", "", "b"], ["7", "8", "9"])
    found = arrays(scipy.sparse.csc_array(dense), Choice(label=[1, np.nan, np.int32(2)]))
    assert (found["labels"].tolist(), found["labeled"].tolist(), found["shape"].tolist()) == (
        [1, 0, 2],
        [True, False, True],
        [3, 2],
    )
    frame = pd.DataFrame({"x": [1, 2], "y": [3, 4], "z": ["a", None]})
    found = arrays(frame, Choice(label="z", features=["x", "y"]))
    assert (found["X"].tolist(), found["labels"].tolist()) == ([[1, 3], [2, 4]], ["a", ""])


def test_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"body\nx\n"))
    body = body_of(tmp_path / "t.csv.gz", Choice("body"))
    assert (body.media_type, body.encoding, body.query) == ("text/csv", "gzip", {"text": "body"})
    assert gzip.decompress(joined(body)) == b"body\nx\n"


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress], ids=["plain", "packed"])
def test_a_table_in_windows_1252_is_sent_as_such(tmp_path: Path, pack: Any) -> None:
    """A byte far behind the first block says so, and the person is told."""
    path = tmp_path / ("t.csv.gz" if pack is gzip.compress else "t.csv")
    path.write_bytes(pack(b"text\n" + b"words\n" * 100_000 + "Käse\n".encode("cp1252")))
    with pytest.warns(UserWarning, match=f"{path.name} is not in UTF-8, so it is read as Windows-1252"):
        assert body_of(path, Choice()).media_type == "text/csv; charset=windows-1252"
    path.write_bytes(pack("text\nKäse\n".encode()))
    assert body_of(path, Choice()).media_type == "text/csv"


@pytest.mark.parametrize(("choice", "lost"), [(Choice(label=["a"]), "label"), (Choice(features=["a"]), "features")])
def test_a_file_is_sent_as_it_is(tmp_path: Path, choice: Choice, lost: str) -> None:
    (tmp_path / "t.csv").write_bytes(b"text\nx\n")
    with pytest.raises(InvalidData, match=f"so {lost} cannot be given as a list; read the file into a data frame"):
        body_of(tmp_path / "t.csv", choice)


NO_LABELS: Any = 5
REFUSED: dict[str, tuple[Any, Choice, str]] = {
    "a column misspelt": (
        pd.DataFrame(columns(None)),
        Choice("bdy"),
        "text: there is no column 'bdy'; did you mean 'body'?",
    ),
    "no column of text": (pd.DataFrame(columns(None)), Choice(), "no column is named 'text'; say which has the text"),
    "labels of another length": (pd.DataFrame(columns(None)), Choice("body", ["a"]), "label: 1 values for 3 documents"),
    "too few labels": (TEXTS, Choice(label=["a"]), "label: there are fewer values than documents"),
    "too many ids": (TEXTS, Choice(id=[*map(str, range(len(TEXTS) + 1))]), "id: there are more values than documents"),
    "a label with a fraction": (
        TEXTS[:1],
        Choice(label=[1.5]),
        "the label 1.5 is float; a label is a text or an integer",
    ),
    "a truth value as label": (
        TEXTS[:1],
        Choice(label=[True]),
        "the label True is a truth value; a label is a text or an integer, as labels",
    ),
    "a number as text": (pd.DataFrame({"text": [3]}), Choice(), "the text 3 is int, no text"),
    "rows of numbers": ([[1, 2]], Choice(), "numbers are a matrix"),
    "a dict": ({"text": "a"}, Choice(), "a dict is not documents; give a list of dicts, or a data frame"),
    "no file": ("nothing.csv", Choice(), "there is no file 'nothing.csv'"),
    "a folder": (".", Choice(), "'.' is a folder; text files are sent as an archive"),
    "another file": (__file__, Choice(), "other files are read into a data frame or a list"),
    "a column of texts": (TEXTS, Choice(label="topic"), "label: texts have no columns with names"),
    "a label that is one value": (
        TEXTS,
        Choice(label=NO_LABELS),
        "label: 5 is int; give the name of a column, or a list",
    ),
    "several labels": (TEXTS[:1], Choice(label=[["a", "b"]]), "a document has one label"),
    "bytes": ([b"a"], Choice(), "the text b'a' is bytes, no text; decode it"),
    "an array of three dimensions": (np.zeros((1, 1, 1)), Choice(), "not ndarray; numbers are a matrix"),
    "a column that comes twice": (
        pd.DataFrame([["a", "b"]], columns=["text", "text"]),
        Choice(),
        "text: two columns are called 'text'; rename one",
    ),
    "text and features": (pd.DataFrame(columns(None)), Choice("body", features=["n"]), "give text= or features="),
    "words as features": (
        pd.DataFrame({"x": ["a"]}),
        Choice(features=["x"]),
        "features: the column 'x' has what is no number",
    ),
    "no such field": (
        pd.DataFrame({"text": ["a"], "when": [1]}),
        Choice(fields=["wen"]),
        "fields: there is no column 'wen'; did you mean 'when'",
    ),
    "gaps in features": (
        pd.DataFrame({"x": [1, None]}),
        Choice(features=["x"]),
        "features: the column 'x' has gaps; fill them, as frame['x'].",
    ),
    "a number": (7, Choice(), "documents cannot be read from int"),
    "an open file": (
        io.StringIO("id,text\n"),
        Choice(),
        "documents cannot be read from StringIO; give a data frame, a list",
    ),
    "columns of a matrix": (np.eye(2), Choice(label="a"), "a matrix has no columns with names"),
    "masked numbers": (np.ma.masked_equal(np.eye(2), 1), Choice(), "masked numbers; fill them, as matrix.filled(0)"),
    "half a character": (
        ["a", "b \udcff c"],
        Choice(),
        "the text 'b \\udcff c' has a character that is none of Unicode",
    ),
    "labels of two kinds": (np.eye(2), Choice(label=["a", 1]), "labels are all texts or all integers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_data_that_cannot_be_sent(name: str) -> None:
    data, choice, detail = REFUSED[name]
    with pytest.raises(InvalidData) as refusal:
        joined(body_of(data, choice))
    assert detail in str(refusal.value)


def test_lines_are_one_object_where_they_are_held() -> None:
    content, headers = held(body_of(["a\nb", "c"], Choice()))
    assert (json.loads(content), headers) == (
        {"documents": [{"text": "a\nb"}, {"text": "c"}]},
        {"Content-Type": "application/json"},
    )


def test_texts_of_numpy_and_missing_ones() -> None:
    assert sent(np.array(["a", "b"]), Choice()) == [{"text": "a"}, {"text": "b"}]
    assert sent(pd.DataFrame({"text": ["a"], "wide": [np.arange(2)]}), Choice(fields=["wide"])) == [
        {"text": "a", "fields": {"wide": [0, 1]}}
    ]
    assert sent([{"vector": np.ones(2), "votes": {"m": {"y": np.float32(0.5)}}}], Choice()) == [
        {"vector": [1.0, 1.0], "votes": {"m": {"y": 0.5}}}
    ]
    assert sent(["a", None, float("nan")], Choice()) == [{"text": "a"}, {"text": ""}, {"text": ""}]


SEVERAL: list[dict[str, Any]] = [
    {"text": "late, again", "labels": ["x", "y"], "weight": 2.0, "votes": {"r": "x", "m": {"y": 0.5}}},
    {"text": "a vote", "labels": []},
    {"text": "cup", "votes": {"r": "y"}},
]
INDICATORS = np.array([[1, 0], [0, 0], [1, 1]])
LISTS, WEIGHTS = [["x", "y"], [], None], [2, float("nan"), None]
VOTES: dict[str, list[Any]] = {"r": ["x", None, "y"], "m": [{"y": 0.5}, None, None]}


def test_several_labels_weights_and_votes_of_frames_and_lists() -> None:
    columns = {
        "text": TEXTS,
        "labels": LISTS,
        "weight": WEIGHTS,
        **{f"vote:{name}": each for name, each in VOTES.items()},
    }
    frame = pd.DataFrame(columns)
    beside = Choice(labels=LISTS, weight=WEIGHTS, votes=VOTES)
    assert sent(frame, Choice()) == sent(frame.rename(columns={"labels": "t"}), Choice(labels="t")) == SEVERAL
    assert sent(frame[["text"]], beside) == sent(TEXTS, beside) == SEVERAL
    assert sent([{"text": text} for text in TEXTS], beside) == sent(SEVERAL, Choice()) == SEVERAL
    named = [{"body": each["text"], "topics": each.get("labels")} for each in SEVERAL]
    assert sent(named, Choice("body", labels="topics")) == [
        {name: value for name, value in each.items() if name in ("text", "labels")} for each in SEVERAL
    ]


def test_a_column_of_one_label_is_read_before_one_of_several() -> None:
    frame = pd.DataFrame({"text": ["a"], "label": ["x"], "labels": [["y"]]})
    assert sent(frame, Choice()) == [{"text": "a", "label": "x"}]
    assert sent(frame, Choice(labels="labels")) == [{"text": "a", "labels": ["y"]}]


def test_an_indicator_matrix_has_the_classes_of_its_columns() -> None:
    wanted = [[0], [], [0, 1]]
    for given in (INDICATORS, INDICATORS.astype(bool), scipy.sparse.csr_matrix(INDICATORS)):
        assert [each["labels"] for each in sent(TEXTS, Choice(labels=given))] == wanted
    frame = pd.DataFrame(INDICATORS, columns=["b", "a"])
    assert [each["labels"] for each in sent(TEXTS, Choice(labels=frame))] == [["b"], [], ["b", "a"]]


def test_several_labels_of_a_matrix_are_arrays() -> None:
    body = body_of(np.eye(3), Choice(labels=LISTS, weight=WEIGHTS))
    arrays = np.load(io.BytesIO(joined(body)))
    assert arrays["classes"].tolist() == ["x", "y"]
    assert arrays["indicators"].tolist() == [[True, True], [False, False], [False, False]]
    assert arrays["labeled"].tolist() == [True, True, False]
    assert arrays["weights"].tolist() == [2.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice(label=["x"] * 3, labels=[["x"]] * 3), "give label=, one of each document, or labels="),
        (Choice(labels=["x"] * 3), "one label a document is label="),
        (Choice(labels=[["x", None]] * 3), "a missing label"),
        (Choice(labels=[["x"]] * 2), "labels: there are fewer values"),
        (Choice(weight=["heavy"] * 3), "no number"),
        (Choice(votes={"r": ["x"] * 4}), "r: there are more values"),
        (Choice(votes=pd.DataFrame({"r": ["x"] * 3})), "votes: give a dict"),
        (Choice(labels=INDICATORS / 2), "1 where a class applies and 0 where it does not, not 0.5"),
        (Choice(label=[["x"]] * 3), "several are labels="),
    ],
)
def test_what_does_not_fit_is_said(choice: Choice, words: str) -> None:
    with pytest.raises(InvalidData, match=words):
        sent(TEXTS, choice)


def test_labels_and_predictions_of_several_are_lists() -> None:
    first = b'{"id": "a", "labels": ["x", "y"], "probabilities": {"x": 0.9}}'
    lines = first + b'\n{"id": "b", "labels": [], "probabilities": {}}'
    found = Labels(decode_lines(lines))
    assert found.columns() == {"id": ["a", "b"], "labels": [["x", "y"], []], "probabilities": [{"x": 0.9}, {}]}
    assert found.to_dict() == {"a": ["x", "y"], "b": []}
    prediction = Prediction("m", 1, ["x", "y"], [["x", "y"], []], [[1.0, 1.0], [-1.0, -1.0]], None)
    assert "1 x, y, 1 none" in repr(prediction)
    assert prediction.to_pandas()["labels"].tolist() == [["x", "y"], []]
