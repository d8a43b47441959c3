"""Several labels, votes and weights over HTTP: every format takes them, and gives them back as they were."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.app.codecs.encodings import npz, parquet
from tests.app.codecs.tables.workbooks import XLSX, workbook
from tests.app.conftest import NDJSON, Gateway, annotate, created, problem_of, publish, text_model

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
SEVERAL: list[dict[str, Any]] = [
    {"id": "a", "text": "wheat, rye", "labels": ["grain", "wheat"], "weight": 2.5, "votes": {"rule": "grain"}},
    {"id": "b", "text": "no ships", "labels": [], "not": ["ship"]},
    {"id": "c", "text": "rain", "not": ["ship", "wheat"], "votes": {"m": {"grain": 0.5, "ship": 0.25}, "rule": "ship"}},
    {"id": "d", "text": "quiet", "weight": 0},
]
SINGLE: list[dict[str, Any]] = [
    {"id": "a", "text": "win", "label": "spam", "weight": 0.5, "votes": {"rule-7": "spam", "m": {"ham": 0.125}}},
    {"id": "b", "text": "lunch", "votes": {"rule-7": None, "m": {"ham": 0.75, "spam": 0.25}}},
    {"id": "c", "text": "tea", "label": "ham", "votes": {"{x": "ham"}},
]
KNOWN = ("label", "labels", "not", "votes", "weight")


def send(gateway: Gateway, body: bytes | str, media_type: str, **query: str) -> dict[str, Any]:
    return created(
        gateway.client.post("/v1/datasets", content=body, headers={"content-type": media_type}, params=query)
    )


def refused(gateway: Gateway, body: bytes | str, media_type: str, **query: str) -> dict[str, Any]:
    answer = gateway.client.post("/v1/datasets", content=body, headers={"content-type": media_type}, params=query)
    errors: list[dict[str, Any]] = problem_of(answer, 422)["errors"]
    assert gateway.kept() == []
    return errors[0]


def listed(gateway: Gateway, id: str, **query: str) -> list[dict[str, Any]]:
    page = gateway.client.get(f"/v1/datasets/{id}/documents", params=query).json()
    return [{name: each[name] for name in KNOWN if name in each} for each in page["documents"]]


def downloaded(gateway: Gateway, id: str, media_type: str, **query: str) -> bytes:
    answer = gateway.client.get(f"/v1/datasets/{id}/documents", headers={"accept": media_type}, params=query)
    assert answer.status_code == 200, answer.text
    return answer.content


def test_they_are_listed_as_they_were_sent(gateway: Gateway) -> None:
    made = gateway.upload(SEVERAL)
    assert (made["label_kind"], made["n_labeled"], made["voters"]) == ("several", 2, {"m": 1, "rule": 2})
    assert made["classes"] == {"grain": 1, "ship": 0, "wheat": 1}
    assert listed(gateway, made["id"]) == [
        {"label": None, "labels": ["grain", "wheat"], "not": [], "votes": {"rule": "grain"}, "weight": 2.5},
        {"label": None, "labels": [], "not": ["ship"], "votes": {}, "weight": 1.0},
        {"label": None, "labels": None, "not": ["ship", "wheat"], "votes": SEVERAL[2]["votes"], "weight": 1.0},
        {"label": None, "labels": None, "not": [], "votes": {}, "weight": 0.0},
    ]
    assert [each["id"] for each in documents(gateway, made["id"], label="wheat")] == ["a"]
    assert [each["id"] for each in documents(gateway, made["id"], state="unlabeled")] == ["c", "d"]


def documents(gateway: Gateway, id: str, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = gateway.client.get(f"/v1/datasets/{id}/documents", params=query).json()["documents"]
    return found


@pytest.mark.parametrize("given", [SEVERAL, SINGLE], ids=["several", "single"])
@pytest.mark.parametrize("media_type", [NDJSON, CSV, PARQUET])
def test_what_is_downloaded_is_the_same_dataset_again(gateway: Gateway, media_type: str, given: list[Any]) -> None:
    made = gateway.upload(given)
    content = downloaded(gateway, made["id"], media_type)
    again = send(gateway, content, media_type, extra="ignore")
    assert (again["sha256"], again["label_kind"]) == (made["sha256"], made["label_kind"])


def test_integers_come_back_from_lists_and_cells(gateway: Gateway) -> None:
    lines: list[dict[str, Any]] = [
        {"text": "a", "labels": [3, 1], "votes": {"r": 3, "m": {"1": 0.5}}},
        {"text": "b", "not": [1]},
    ]
    made = gateway.upload(lines)
    for media_type in (NDJSON, PARQUET):
        content = downloaded(gateway, made["id"], media_type)
        assert send(gateway, content, media_type, extra="ignore")["sha256"] == made["sha256"]


def test_a_table_says_which_column_has_labels_and_what_parts_them(gateway: Gateway) -> None:
    wanted = gateway.upload([{"text": "x", "labels": ["b", "a"]}, {"text": "y", "labels": []}, {"text": "z"}])
    table = "text,label,topics\nx,kept,b | a\ny,too,[]\nz,,\n"
    made = send(gateway, table, CSV, labels="topics", separator="|", extra="ignore")
    assert made["sha256"] == wanted["sha256"]
    lines = '{"text": "x", "topics": ["b", "a"]}\n{"text": "y", "topics": []}\n{"text": "z"}\n'
    assert send(gateway, lines, NDJSON, labels="topics")["sha256"] == wanted["sha256"]
    kept = send(gateway, table, CSV)
    assert (kept["label_kind"], kept["fields"], kept["classes"]) == ("single", ["topics"], {"kept": 1, "too": 1})
    both = send(gateway, "text,label,labels,not\nx,a,b,c\n", CSV)
    assert (both["classes"], both["fields"]) == ({"a": 1}, ["labels", "not"])


INDICATED: dict[str, list[Any]] = {
    "text": ["x", "y", "z", "w"],
    "id": ["a", "b", "c", "d"],
    "ship": [True, False, None, None],
    "corn": [1, 0, 0, None],
    "not": ["yes", "No", "no", ""],
}


@pytest.mark.parametrize("media_type", [CSV, PARQUET, XLSX])
def test_a_column_a_label_says_which_apply(gateway: Gateway, media_type: str) -> None:
    rows = [[*INDICATED], *map(list, zip(*INDICATED.values(), strict=True))]
    bodies = {
        CSV: "\n".join(",".join("" if each is None else str(each) for each in row) for row in rows).encode(),
        PARQUET: parquet(INDICATED),
        XLSX: workbook({"S": rows}),
    }
    made = send(gateway, bodies[media_type], media_type, labels="ship|corn|not", separator="|")
    wanted = [(["corn", "not", "ship"], []), ([], []), (None, ["corn", "not"]), (None, [])]
    assert [(each["labels"], each["not"]) for each in listed(gateway, made["id"])] == wanted
    assert made["fields"] == []


def test_lists_of_parquet_are_labels_where_they_are_meant(gateway: Gateway) -> None:
    columns = {"text": ["x", "y"], "topics": [["b", "a"], None], "others": [[1], [2]], "weight": [1.0, 0.5]}
    coded = pa.array([None, ["c"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))
    made = send(gateway, parquet(columns | {"not": coded}), PARQUET, labels="topics")
    assert (made["classes"], made["n_labeled"], made["fields"]) == ({"a": 1, "b": 1, "c": 0}, 1, [])
    assert [each["weight"] for each in listed(gateway, made["id"])] == [1.0, 0.5]


def test_a_weight_is_pointed_out_and_may_be_kept(gateway: Gateway) -> None:
    table = "text,weight\nx,70\ny,\n"
    made = send(gateway, table, CSV)
    assert "the column 'weight' is read as the weights of labels" in made["warnings"][0]
    assert [each["weight"] for each in listed(gateway, made["id"])] == [70.0, 1.0]
    assert send(gateway, table, CSV, weight="")["fields"] == ["weight"]


@pytest.mark.parametrize(
    ("line", "field", "words"),
    [
        ({"labels": ["x"], "label": "x"}, "labels", "beside label"),
        ({"not": ["x"], "label": "y"}, "not", "beside label"),
        ({"labels": ["x", "x"]}, "labels", "'x' twice"),
        ({"labels": ["x"], "not": ["x"]}, "not", "labels has, too"),
        ({"labels": "x"}, "labels", "one label goes in label, or alone in an array"),
        ({"labels": [""]}, "labels", "at least 1 character"),
        (
            {"labels": list(range(10_001))},
            "labels",
            "10001 labels, more than the 10000 of HALFMOON_MAX_DOCUMENT_LABELS",
        ),
        ({"not": [1.5]}, "not", "must be an integer or a text"),
        ({"weight": -1}, "weight", "at least 0"),
        ({"weight": "heavy"}, "weight", "must be a number"),
        ({"votes": {"r": {}}}, "votes", "names no class"),
        ({"votes": {"r": {"x": 1.5}}}, "votes", "from 0 to 1"),
        ({"votes": {"": "x"}}, "votes", "no name of a voter"),
        ({"votes": ["x"]}, "votes", "must be an object"),
    ],
)
def test_bad_lines_are_refused_with_words(gateway: Gateway, line: dict[str, Any], field: str, words: str) -> None:
    error = refused(gateway, json.dumps({"id": "odd", "text": "t"} | line), NDJSON)
    assert (error["document"], error["field"]) == ("odd", field)
    assert words in error["detail"]


@pytest.mark.parametrize(
    ("table", "query", "document", "field", "words"),
    [
        ("id,text,labels\no,x,a;;b\n", {}, "o", "labels", "an empty label, in a list or beside a ';'"),
        ("text,labels\nx,a\ny,b;\n", {}, "1", "labels", "[] says that none applies"),
        ("text,weight\nx,nan\n", {}, "0", "weight", "'nan' is no number"),
        ("text,weight\nx,-1\n", {}, "0", "weight", "at least 0"),
        ("text,vote:r\nx,{bad}\n", {}, "0", "vote:r", "object of JSON"),
        ("text,vote:r,vote:r\nx,a,b\n", {}, "", "vote:r", "twice"),
        ("text,label,vote:r\nx,spam,\ny,ham,\nz,,spma\n", {}, "2", "votes", "did you mean 'spam'?"),
        ("text\nx\n", {"labels": "topics"}, "", "labels", "no column is named 'topics'"),
        (
            "text,a,b\nx,1,0\n\ny,0,2\n",
            {"labels": "a;b"},
            "1",
            "b",
            "line 4: '2' does not say whether the label applies",
        ),
        ("text,a,b\nx,1,\n", {"labels": "a;b"}, "0", "b", "line 2: is empty, but 'a' applies"),
        ("text,a,b\nx,1,0\n", {"labels": "a;c"}, "", "labels", "no column is named 'c'"),
        ("text,a,a\nx,1,0\n", {"labels": "a;text"}, "", "labels", "the column 'a' twice"),
        ("text,a\nx,1\n", {"labels": "a;text"}, "", "labels", "holds the text already"),
        ("text,a,b\nx,1,0\n", {"labels": "a;b", "not": "b"}, "", "not", "0 says that one does not apply"),
        (
            parquet({"text": ["x"], "labels": [[1.5]]}),
            {},
            "",
            "labels",
            "is of list<element: double>; it must be a column of",
        ),
        (
            parquet({"text": ["x"], "labels": [[["a"]]]}),
            {},
            "",
            "labels",
            "it must be a column of lists of texts or integers",
        ),
        (
            parquet({"text": ["x"], "labels": [{"a": 1}]}),
            {},
            "",
            "labels",
            "it must be a column of lists of texts or integers",
        ),
    ],
)
def test_bad_cells_are_refused_with_words(
    gateway: Gateway, table: str | bytes, query: dict[str, str], document: str, field: str, words: str
) -> None:
    error = refused(gateway, table, CSV if isinstance(table, str) else PARQUET, **query)
    assert (error.get("document", ""), error["field"]) == (document, field)
    assert words in error["detail"]


@pytest.mark.parametrize(
    ("media_type", "content", "asked", "detail"),
    [
        (CSV, "text,labels\nx,a\n", {"separator": ""}, "1 to 8 characters"),
        (CSV, "text,labels\nx,a\n", {"separator": "123456789"}, "1 to 8 characters"),
        (CSV, "text,label\nx,a|b\n", {"separator": "|"}, "name one by ?labels=NAME, or leave separator out"),
        (XLSX, workbook({"S": [["text"], ["x"]]}), {"separator": ";"}, "no column holds several"),
        ("text/x-svmlight", "1 1:1\n", {"separator": ";"}, "has neither"),
    ],
)
def test_a_separator_is_bounded_and_needs_cells_of_several_labels(
    gateway: Gateway, media_type: str, content: str | bytes, asked: dict[str, str], detail: str
) -> None:
    fault = refused(gateway, content, media_type, **asked)
    assert fault["field"] == "separator"
    assert detail in fault["detail"]


def test_a_label_with_the_separator_in_it_is_not_written(gateway: Gateway) -> None:
    made = gateway.upload([{"text": "x", "labels": ["a;b", "c"]}])
    answer = gateway.client.get(f"/v1/datasets/{made['id']}/documents", headers={"accept": CSV})
    assert "';' cannot part the label 'a;b'" in problem_of(answer, 422)["detail"]
    table = downloaded(gateway, made["id"], CSV, separator="|")
    assert send(gateway, table, CSV, separator="|", extra="ignore")["sha256"] == made["sha256"]


@pytest.mark.parametrize("n", [1_001, 10_000])
def test_more_labels_than_a_dataset_may_have_are_refused_with_the_setting(gateway: Gateway, n: int) -> None:
    kept = gateway.upload([{"text": "x", "labels": list(range(1_000))}])["id"]
    for answer in (
        gateway.client.post("/v1/datasets", json={"documents": [{"text": "x", "labels": list(range(n))}]}),
        gateway.client.put(f"/v1/datasets/{kept}/labels", json={"labels": {"0": list(range(n))}}),
    ):
        detail = problem_of(answer, 413)["detail"]
        assert detail == "more than 1000 classes; leave rare ones out, or have HALFMOON_MAX_CLASSES raised"


def test_labels_become_several_and_single_again(gateway: Gateway) -> None:
    made = gateway.upload(SINGLE)
    path = f"/v1/datasets/{made['id']}/labels"
    several = gateway.client.put(path, json={"label_kind": "several", "labels": {}}).json()
    assert (several["label_kind"], several["classes"], several["voters"]) == (
        "several",
        made["classes"],
        made["voters"],
    )
    assert [each["labels"] for each in listed(gateway, several["id"])] == [["spam"], None, ["ham"]]
    path = f"/v1/datasets/{several['id']}/labels"
    assert gateway.client.put(path, json={"label_kind": "single"}).json()["sha256"] == made["sha256"]
    two = gateway.client.put(path, json={"labels": {"b": ["ham", "spam"]}, "not": {"a": ["ham"]}}).json()
    assert [each["not"] for each in listed(gateway, two["id"])] == [["ham"], [], []]
    answer = gateway.client.put(f"/v1/datasets/{two['id']}/labels", json={"label_kind": "single"})
    assert [error["document"] for error in problem_of(answer, 422)["errors"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "must be an object"),
        ({"labels": {"a": "spam"}}, "must be a list of labels"),
        ({"labels": {"a": [True]}}, "must be a string or an integer"),
        ({"not": {"a": "ham"}}, "must be a list of labels"),
        ({"label_kind": "many"}, "label_kind"),
    ],
)
def test_bad_changes_are_refused_with_words(gateway: Gateway, body: dict[str, Any], words: str) -> None:
    made = gateway.upload(SEVERAL)
    answer = gateway.client.put(f"/v1/datasets/{made['id']}/labels", json=body)
    assert words in json.dumps(problem_of(answer, 422))


def test_people_give_several_labels(gateway: Gateway) -> None:
    made = gateway.upload(SEVERAL)
    id = made["id"]
    annotate(gateway, id, {"document": "d", "labels": ["ship", "corn"], "by": "ann"})
    annotate(
        gateway, id, {"document": "d", "labels": ["corn"], "by": "bob"}, {"document": "c", "labels": [], "by": "bob"}
    )
    found = documents(gateway, id, ids="d,c,a")
    assert [each["labels"] for each in found] == [["corn"], [], ["grain", "wheat"]]
    assert found[0]["people"] == {"ann": ["corn", "ship"], "bob": ["corn"]}
    assert found[0]["by"] == "bob"
    summary = gateway.client.get(f"/v1/datasets/{id}/annotations/summary").json()
    assert (summary["classes"], summary["labeled"]) == ({"corn": 1, "grain": 1, "ship": 0, "wheat": 1}, 4)
    assert (summary["compared"], summary["agreed"]) == (1, 0)
    log = gateway.client.get(f"/v1/datasets/{id}/annotations").json()["annotations"]
    assert [(each["label"], each["labels"]) for each in log[:2]] == [(None, ["corn", "ship"]), (None, ["corn"])]
    annotate(gateway, id, {"document": "d", "action": "undo", "by": "bob"})
    assert documents(gateway, id, ids="d")[0]["labels"] == ["corn", "ship"]
    annotate(gateway, id, {"id": "again", "document": "d", "label": "ship", "by": "ann"})
    assert documents(gateway, id, ids="d")[0]["labels"] == ["ship"]


@pytest.mark.parametrize(
    ("given", "annotation", "words"),
    [
        (SEVERAL, {"labels": ["x", "x"]}, "'x' twice"),
        (SEVERAL, {"labels": [str(number) for number in range(10_001)]}, "10001 labels, more than the 10000"),
        (SEVERAL, {"labels": [3]}, "all strings or all integers"),
        (SEVERAL, {"labels": ["x"], "by": "rule"}, "'rule' is a voter of the dataset"),
        (SINGLE, {"label": "ham", "by": "rule-7"}, "'rule-7' is a voter of the dataset"),
        (SINGLE, {"labels": ["ham", "spam"]}, "a dataset of several labels"),
        (SINGLE, {"labels": []}, "a dataset of several labels"),
    ],
)
def test_bad_annotations_are_refused_with_words(
    gateway: Gateway, given: list[Any], annotation: dict[str, Any], words: str
) -> None:
    made = gateway.upload(given)
    body = {"annotations": [{"id": "1", "document": "a"} | annotation]}
    answer = gateway.client.post(f"/v1/datasets/{made['id']}/annotations", json=body)
    assert words in json.dumps(problem_of(answer, 422))


INDICATORS = np.array([[1, 1], [0, 0], [0, 1]])


@pytest.mark.parametrize("names", [["b", "a"], [7, 3]], ids=["texts", "integers"])
def test_indicators_of_arrays_are_several_labels(gateway: Gateway, names: list[Any]) -> None:
    labels = [[names[0], names[1]], [], None]
    wanted = gateway.upload(
        [{"vector": row, "labels": each, "weight": 2} for row, each in zip(np.eye(3).tolist(), labels, strict=True)]
    )
    labeled = np.array([True, True, False])
    body = npz(
        {
            "X": np.eye(3),
            "indicators": INDICATORS,
            "classes": np.array(names),
            "labeled": labeled,
            "weights": np.full(3, 2),
        }
    )
    assert send(gateway, body, "application/x-npz")["sha256"] == wanted["sha256"]


@pytest.mark.parametrize(
    ("arrays", "field", "words"),
    [
        ({"indicators": INDICATORS}, "classes", "neither goes without the other"),
        ({"classes": np.array(["a"])}, "classes", "neither goes without the other"),
        ({"indicators": INDICATORS, "classes": np.array(["a"])}, "classes", "has 1 names, but indicators has 2"),
        ({"indicators": 2 * INDICATORS, "classes": np.array(["a", "b"])}, "indicators", "must be 0 or 1"),
        ({"indicators": INDICATORS[:2], "classes": np.array(["a", "b"])}, "indicators", "has length 2, not 3"),
        (
            {"indicators": np.asfortranarray(INDICATORS), "classes": np.array(["a", "b"])},
            "indicators",
            "ascontiguousarray",
        ),
        (
            {"indicators": INDICATORS, "classes": np.array(["a", "b"]), "labels": np.array(["a"] * 3)},
            "labels",
            "beside indicators",
        ),
        ({"weights": np.array([1.0, -1.0, 1.0])}, "weight", "at least 0"),
        ({"weights": np.array([1.0, np.nan, 1.0])}, "weight", "at least 0"),
    ],
)
def test_odd_arrays_are_refused_with_words(gateway: Gateway, arrays: dict[str, Any], field: str, words: str) -> None:
    error = refused(gateway, npz({"X": np.eye(3), **arrays}), "application/x-npz")
    assert error["field"] == field
    assert words in error["detail"]


def test_a_model_of_one_label_is_not_compared_with_several(gateway: Gateway) -> None:
    publish(gateway.store, "mails", model=text_model())
    made = gateway.upload(SEVERAL)
    path = "/v1/models/mails/evaluate"
    lines = "".join(json.dumps(each) + "\n" for each in SEVERAL)
    error = problem_of(gateway.client.post(path, content=lines, headers={"content-type": NDJSON}), 422)["errors"][0]
    assert (error["document"], error["field"]) == ("a", "labels")
    assert "a model of several labels" in error["detail"]
    answer = gateway.client.post(path, json={"dataset": made["id"]})
    assert "a model of several labels" in problem_of(answer, 422)["detail"]
