"""Text and named features over HTTP, and errors where kinds of documents, models and options do not match."""

import itertools
import json
import threading
from typing import Any

import numpy as np
import pytest

from core.documents.kinds import NamedRows, TextRows
from core.documents.text.tfidf import TextTerms
from core.documents.vocabulary import Places
from storage.repositories.datasets import Datasets
from tests.app.codecs.encodings import npz
from tests.app.conftest import NDJSON, Gateway, Start, named_model, problem_of, publish, text_model
from tests.calls import noted

TEXTS: list[dict[str, Any]] = [
    {"id": "a", "text": 'the "goal" {was} late', "label": "sport"},
    {"id": "b", "text": "a vote \\ late\u2028\0 ελιά 🙂", "label": "politics"},
    {"id": "c", "text": ""},
    {"id": "d", "text": "}" * 300},
]
FEATURES: list[dict[str, Any]] = [
    {"features": {"go}al": 1.5, "late": 2}, "label": 1},
    {"label": 2, "features": {"vote": -1, "late": 0.25, "ελιά": 1e-3}},
    {"features": {}},
    {"features": {"vote": 0}},
]


@pytest.mark.parametrize("size", [7, 64, 10**6])
@pytest.mark.parametrize("media_type", ["application/json", NDJSON])
def test_text_comes_back_as_it_was_sent(gateway: Gateway, media_type: str, size: int) -> None:
    body = (
        json.dumps({"documents": TEXTS}).encode()
        if media_type != NDJSON
        else b"".join(json.dumps(each).encode() + b"\n" for each in TEXTS)
    )
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    answer = gateway.client.post("/v1/datasets", content=pieces, headers={"content-type": media_type})
    made = answer.json()
    assert (answer.status_code, made["kind"], made["n_documents"], made["n_labeled"]) == (201, "text", 4, 2)
    assert (made["n_features"], made["n_nonzeros"]) == (None, None)
    assert made["warnings"][0] == "1 document without any text"
    documents = Datasets(gateway.store).open(made["id"])
    assert isinstance(documents.rows, TextRows)
    assert list(documents.rows) == [document["text"] for document in TEXTS]
    assert list(documents.ids) == ["a", "b", "c", "d"]
    assert (
        made["sha256"]
        == gateway.upload(TEXTS)["sha256"]
        != gateway.upload([*TEXTS[:3], {"id": "d", "text": "}" * 299 + "{"}])["sha256"]
    )


def test_named_features_come_back_as_they_were_sent(gateway: Gateway) -> None:
    made = gateway.upload(FEATURES)
    assert (made["kind"], made["n_documents"], made["n_features"], made["n_nonzeros"]) == ("features", 4, 4, 5)
    assert made["warnings"][0] == "2 documents without any nonzero value"
    rows = Datasets(gateway.store).open(made["id"]).rows
    assert isinstance(rows, NamedRows)
    assert list(rows.names) == ["go}al", "late", "vote", "ελιά"]
    indptr = rows.indptr.tolist()
    found = [
        {
            rows.names[index]: value
            for index, value in zip(
                rows.rows.indices[start:stop].tolist(), rows.rows.values[start:stop].tolist(), strict=True
            )
        }
        for start, stop in itertools.pairwise(indptr)
    ]
    assert found == [
        {name: pytest.approx(value) for name, value in document["features"].items() if value} for document in FEATURES
    ]
    assert all(
        (np.diff(rows.rows.indices[start:stop].astype(int)) > 0).all() for start, stop in itertools.pairwise(indptr)
    )


def test_the_order_of_names_in_a_document_is_no_content(gateway: Gateway) -> None:
    turned = [document | {"features": dict(reversed(document["features"].items()))} for document in FEATURES]
    assert (
        gateway.upload(turned)["sha256"] == gateway.upload(FEATURES)["sha256"] != gateway.upload(FEATURES[:3])["sha256"]
    )


def test_kinds_may_not_change_between_blocks(gateway: Gateway) -> None:
    with gateway.unchanged():
        lines = [json.dumps({"text": "word " * 100}).encode()] * 2000 + [b'{"id": "late", "indices": [1]}']
        problem = problem_of(
            gateway.client.post("/v1/datasets", content=b"\n".join(lines), headers={"content-type": NDJSON}), 422
        )
        assert (problem["errors"][0]["document"], problem["errors"][0]["field"]) == ("late", "indices")


@pytest.mark.parametrize(
    ("settings", "documents", "what"),
    [
        ({"max_feature_names": 3}, FEATURES, "more than 3 names of features"),
        ({"max_document_bytes": 100_000}, [{"text": "word " * 60_000}], "bytes in the document number 1"),
        ({"max_dataset_bytes": 400}, TEXTS, "more than 400 bytes"),
        ({"max_documents": 3}, TEXTS, "more than 3 documents"),
        ({"max_nonzeros": 4}, FEATURES, "more than 4 nonzeros"),
    ],
)
def test_too_much(start: Start, settings: dict[str, int], documents: list[dict[str, Any]], what: str) -> None:
    gateway = start(**settings)
    with gateway.unchanged():
        problem = problem_of(gateway.client.post("/v1/datasets", json={"documents": documents}), 413)
        assert what in problem["detail"]


def test_names_in_memory_are_counted(start: Start) -> None:
    gateway = start(max_buffered_bytes=200_000)
    lines = b"".join(
        json.dumps({"features": {f"n{line}-{k}": 1 for k in range(10)}}).encode() + b"\n" for line in range(5000)
    )
    problem = problem_of(gateway.client.post("/v1/datasets", content=lines, headers={"content-type": NDJSON}), 429)
    assert "bodies in memory" in problem["detail"]
    assert gateway.client.get("/v1/datasets").json()["datasets"] == []


@pytest.mark.parametrize("repeats", [1, 3000])
def test_text_is_predicted_and_unknown_words_are_reported(gateway: Gateway, repeats: int) -> None:
    publish(gateway.store, model=text_model())
    texts = ["a GOAL", "vote! vote", "nothing known", ""] * repeats
    answer = gateway.client.post(
        "/v1/models/news/predict", json={"documents": [{"text": text} for text in texts]}
    ).json()
    assert answer["labels"][:2] == ["sport", "politics"]
    assert answer["scores"] == [[1.0], [-1.0], [0.0], [0.0]] * repeats
    assert answer["warnings"] == [
        f"{2 * repeats} of {5 * repeats} words are new to the model; they count as zero",
        f"{2 * repeats} of {4 * repeats} documents have nothing that the model knows, so their answers do not "
        "depend on them",
    ]
    version = gateway.client.get("/v1/models/news/versions/1").json()
    assert (version["kind"], version["n_features"]) == ("text", 5)


def test_named_features_are_predicted_and_unknown_ones_are_reported(gateway: Gateway) -> None:
    publish(gateway.store, model=named_model())
    documents = [{"features": {"vote": 0.5, "goal": 2}}, {"features": {"new": 3, "vote": 1}}, {"features": {}}]
    answer = gateway.client.post("/v1/models/news/predict", json={"documents": documents}).json()
    assert answer["scores"] == [[1.0], [-2.0], [0.0]]
    assert answer["warnings"] == [
        "1 of 4 values are of features that the model has not seen; they count as zero",
        "1 of 3 documents have nothing that the model knows, so their answers do not depend on them",
    ]
    assert gateway.client.get("/v1/models/news/versions/1").json()["kind"] == "features"


GIVEN: dict[str, dict[str, Any]] = {
    "indices": {"indices": [1]},
    "features": {"features": {"goal": 1}},
    "text": {"text": "goal"},
}


@pytest.mark.parametrize(("makes", "takes"), [(None, "indices"), (named_model, "features"), (text_model, "text")])
@pytest.mark.parametrize("field", GIVEN)
def test_a_model_takes_the_kind_it_was_trained_on(gateway: Gateway, makes: Any, takes: str, field: str) -> None:
    publish(gateway.store, model=makes and makes())
    answer = gateway.client.post("/v1/models/news/predict", json={"documents": [GIVEN[field] | {"id": "x"}]})
    if field == takes:
        assert answer.status_code == 200
        return
    fault = problem_of(answer, 422)["errors"][0]
    assert (fault["document"], fault["field"]) == ("x", field)
    assert f"takes {takes}, not {field}" in fault["detail"]


def test_many_texts_in_a_tensor_are_read_batch_after_batch(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(gateway.store, model=text_model())
    read = noted(monkeypatch, TextTerms, "read", lambda self, rows: rows.n_rows)
    texts = ["goal", "vote vote"] * 10_000
    tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts), 1], "data": texts}
    answer = gateway.client.post("/v2/models/news/infer", json={"inputs": [tensor]}).json()
    assert answer["outputs"][1]["data"] == [1.0, -1.0] * 10_000
    assert max(read) <= 8192


@pytest.mark.parametrize(("makes", "field"), [(named_model, "features"), (text_model, "text")])
def test_the_event_loop_does_not_look_up_all_names_of_a_model(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, makes: Any, field: str
) -> None:
    publish(gateway.store, model=makes())
    threads = noted(monkeypatch, Places, "of", lambda _: threading.current_thread().name)
    gateway.client.post("/v1/models/news/predict", json={"documents": [GIVEN[field]]}).raise_for_status()
    assert [name.startswith("load") for name in threads] == [True]


def test_other_formats_are_vectors(gateway: Gateway) -> None:
    publish(gateway.store, model=text_model())
    for media_type, content in (("text/x-svmlight", b"0 1:1\n"), ("application/x-npz", npz({"X": np.eye(2)}))):
        problem = problem_of(
            gateway.client.post("/v1/models/news/predict", content=content, headers={"content-type": media_type}), 422
        )
        assert problem["errors"][0] == {
            "document": "0",
            "field": "indices",
            "detail": "the model was trained on text and takes text, not indices",
        }


def test_explanations_name_terms_and_features(gateway: Gateway) -> None:
    publish(gateway.store, model=text_model())
    found = gateway.client.post(
        "/v1/models/news/explain", json={"documents": [{"text": "goal late goal"}], "n": 2}
    ).json()
    assert found["weights"][0]["for"][0]["name"] == "goal"
    assert {term["name"] for term in found["documents"][0]["contributions"]} <= {
        "goal",
        "late",
        "goal late",
        "late goal",
    }
    publish(gateway.store, "votes", model=named_model())
    found = gateway.client.post("/v1/models/votes/explain", json={"documents": [{"features": {"vote": 1}}]}).json()
    assert [term["name"] for term in found["documents"][0]["contributions"]] == ["vote"]


@pytest.mark.parametrize("strategy", ["diverse", "uncertain", "random"])
def test_documents_of_text_are_suggested(gateway: Gateway, strategy: str) -> None:
    publish(gateway.store, model=text_model())
    texts = {"even": "goal vote", "sure": "goal goal", "nothing": "strange", "known": "vote"}
    dataset = gateway.upload(
        [{"id": id, "text": text} | ({"label": "sport"} if id == "known" else {}) for id, text in texts.items()]
    )["id"]
    found = gateway.client.post(
        "/v1/models/news/suggest", json={"dataset": dataset, "n": 2, "strategy": strategy}
    ).json()
    ids = [each["id"] for each in found["suggestions"]]
    assert len(set(ids)) == 2
    assert "known" not in ids
    if strategy == "uncertain":
        assert ids == [
            "even",
            "sure",
        ]  # one of either class that is predicted: the model is as unsure of "nothing", but takes both for one class
    if strategy == "diverse":
        assert set(ids) == {"even", "sure"}  # what has no term that the model knows stands for nothing
    vectors = gateway.upload([{"indices": [1]}])["id"]
    problem = problem_of(
        gateway.client.post("/v1/models/news/suggest", json={"dataset": vectors, "strategy": strategy}), 422
    )
    assert problem["errors"][0]["field"] == "dataset"


def test_how_text_becomes_terms_is_kept_with_the_job(gateway: Gateway) -> None:
    dataset = gateway.upload(TEXTS)["id"]
    assert gateway.job(dataset=dataset).json()["text"] == {"min_documents": 2, "ngrams": 2, "max_terms": 500_000}
    assert gateway.job(dataset=dataset, text={"ngrams": 1, "max_terms": 7}).json()["text"] == {
        "min_documents": 2,
        "ngrams": 1,
        "max_terms": 7,
    }
    assert gateway.job(documents=TEXTS, text={"min_documents": 1}).json()["text"]["min_documents"] == 1
    assert gateway.job(dataset=gateway.upload(FEATURES)["id"]).json()["text"] is None


@pytest.mark.parametrize(
    ("text", "field", "detail"),
    [
        ({"ngrams": 3}, "text.ngrams", "1 or 2"),
        ({"min_documents": 0}, "text.min_documents", "greater than or equal to 1"),
        ({"max_terms": "all"}, "text.max_terms", "integer"),
        ({"stop_words": []}, "text.stop_words", "known are max_terms, min_documents, ngrams"),
        ([], "text", "object"),
    ],
)
def test_options_of_text_that_are_refused(gateway: Gateway, text: Any, field: str, detail: str) -> None:
    dataset, before = gateway.upload(TEXTS)["id"], gateway.kept()
    problem = problem_of(gateway.job(dataset=dataset, text=text), 422)
    assert problem["errors"][0]["field"] == field
    assert detail in problem["errors"][0]["detail"]
    assert gateway.kept() == before


def test_options_of_text_where_there_is_none(gateway: Gateway) -> None:
    dataset = gateway.upload([{"indices": [0], "label": "a"}, {"indices": [1], "label": "b"}])["id"]
    problem = problem_of(gateway.job(dataset=dataset, text={}), 422)
    assert problem["errors"] == [
        {"document": "", "field": "text", "detail": "is for documents that have text, but these are vectors"}
    ]


@pytest.mark.usefixtures("version")
def test_a_start_of_another_kind_is_refused(gateway: Gateway) -> None:
    problem = problem_of(gateway.job(dataset=gateway.upload(TEXTS)["id"], start_from="news"), 422)
    assert problem["errors"][0]["field"] == "start_from"
    assert (
        problem["errors"][0]["detail"]
        == "the model was trained on vectors, but the documents have text; train without start_from"
    )


def test_the_same_key_with_other_options_of_text(gateway: Gateway) -> None:
    dataset, key = gateway.upload(TEXTS)["id"], {"Idempotency-Key": "k"}
    body = {"dataset": dataset, "model": "m", "algorithm": "svm", "text": {"ngrams": 1}}
    first = gateway.client.post("/v1/jobs", json=body, headers=key).json()
    assert gateway.client.post("/v1/jobs", json=body, headers=key).json()["id"] == first["id"]
    problem_of(gateway.client.post("/v1/jobs", json=body | {"text": {"ngrams": 2}}, headers=key), 422)


def infer(gateway: Gateway, *tensors: dict[str, Any]) -> Any:
    return gateway.client.post("/v2/models/news/infer", json={"inputs": list(tensors)})


def test_text_as_a_tensor(gateway: Gateway) -> None:
    publish(gateway.store, model=text_model())
    described = gateway.client.get("/v2/models/news").json()
    assert described["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    answer = infer(gateway, {"name": "text", "datatype": "BYTES", "shape": [2], "data": ["the goal", "vote"]}).json()
    assert {output["name"]: output["data"] for output in answer["outputs"]} == {
        "labels": ["sport", "politics"],
        "scores": [1.0, -1.0],
    }
    for tensor, detail in (
        ({"name": "text", "datatype": "FP32", "shape": [1], "data": ["goal"]}, "is not BYTES"),
        ({"name": "text", "datatype": "BYTES", "shape": [2], "data": ["goal"]}, "do not fill the shape"),
        ({"name": "text", "datatype": "BYTES", "shape": [1], "data": [7]}, "data must be strings"),
        ({"name": "text", "datatype": "BYTES", "shape": [0], "data": []}, "there is no document"),
        ({"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [1]}, "takes text, not indices"),
    ):
        refused = infer(gateway, tensor)
        assert (refused.status_code, detail in refused.json()["error"]) == (400, True), refused.text


@pytest.mark.usefixtures("version")
def test_tensors_of_text_for_a_model_of_vectors(gateway: Gateway) -> None:
    refused = infer(gateway, {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["goal"]})
    assert (refused.status_code, "takes indices, not text" in refused.json()["error"]) == (400, True)


def test_a_dataset_of_another_kind_is_not_scored(gateway: Gateway) -> None:
    publish(gateway.store, model=text_model())
    answer = gateway.client.post("/v1/models/news/evaluate", json={"dataset": gateway.upload(FEATURES)["id"]})
    assert problem_of(answer, 422)["errors"][0] == {
        "document": "",
        "field": "dataset",
        "detail": "the model was trained on text and takes text, not features",
    }
    answer = gateway.client.post("/v1/models/news/evaluate", json={"dataset": gateway.upload(TEXTS)["id"]})
    assert answer.json()["accuracy"] == 0.5 or answer.json()["accuracy"] == 1.0
