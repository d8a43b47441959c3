"""Documents of several parts: uploads in every format, stored files, predictions and explanations."""

import json
from typing import Any

import numpy as np
import pytest

from core.documents.kinds import PartRows, TextRows
from core.documents.part_columns import Block, PartColumns
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import NUMBERS
from core.models.model import LinearModel
from core.options.text import TextOptions
from storage.repositories.datasets import Datasets
from tests.app.codecs.encodings import npz
from tests.app.conftest import NDJSON, Gateway, problem_of, publish

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "text": "goal late", "vector": [1.0, 0.0], "label": "sport"},
    {"id": "b", "text": "vote late", "vector": [0.0, 2.5], "label": "politics"},
    {"id": "c", "text": "goal vote"},
    {"id": "d", "vector": [0.5, 0.1]},
]
PREDICT = "/v1/models/news/predict"


def as_npz() -> bytes:
    return npz(
        {
            "text": np.array([document.get("text", "") for document in DOCUMENTS]),
            "X": np.array([document.get("vector", [0.0, 0.0]) for document in DOCUMENTS]),
            "labels": np.array([document.get("label", "") for document in DOCUMENTS]),
            "ids": np.array([document["id"] for document in DOCUMENTS]),
        }
    )


def as_lines(documents: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(document).encode() for document in documents)


@pytest.mark.parametrize(("media_type", "body"), [(NDJSON, as_lines(DOCUMENTS)), ("application/x-npz", as_npz())])
def test_the_same_documents_in_every_format(gateway: Gateway, media_type: str, body: bytes) -> None:
    made = gateway.upload(DOCUMENTS)
    answer = gateway.client.post("/v1/datasets", content=body, headers={"content-type": media_type}).json()
    assert answer["sha256"] == made["sha256"]
    assert made["kind"] == "parts"
    assert made["parts"] == [
        {"name": "text", "kind": "text", "n_features": None, "n_nonzeros": None, "n_missing": 1},
        {"name": "vector", "kind": "vectors", "n_features": 2, "n_nonzeros": 4, "n_missing": 1},
    ]
    assert made["warnings"][:2] == ["1 of 4 documents without text", "1 of 4 documents without vector"]


@pytest.mark.parametrize("beside", [[], ["text"], ["text", "vector"]], ids=str)
def test_named_vectors_in_npz_are_those_of_json(gateway: Gateway, beside: list[str]) -> None:
    titles, bodies = np.asfortranarray([[1.0, 0.0, 2.0], [0.0, 0.5, 0.0]]), np.array([[3, 4], [5, 6]])
    own: dict[str, list[Any]] = {"text": ["goal late", "vote"], "vector": [[0.5], [1.5]]}
    documents = [
        {"vectors": {"title": titles[row].tolist(), "body": bodies[row].tolist()}}
        | {name: own[name][row] for name in beside}
        for row in range(2)
    ]
    arrays = {"vectors.title": titles, "vectors.body": bodies} | {
        {"vector": "X"}.get(name, name): np.array(own[name]) for name in beside
    }
    answer = gateway.client.post("/v1/datasets", content=npz(arrays), headers={"content-type": "application/x-npz"})
    assert answer.status_code == 201, answer.text
    assert [part["name"] for part in answer.json()["parts"]] == [*beside, "vector.body", "vector.title"]
    assert answer.json()["sha256"] == gateway.upload(documents)["sha256"]


@pytest.mark.parametrize(
    ("arrays", "field", "detail"),
    [
        ({"vectors.a b": np.ones((2, 1))}, "vectors.a b", "the name of a vector has 1 to 64 letters, digits, _ or -"),
        ({"vectors.a": np.ones((2, 1)), "vectors.b": np.ones((3, 1))}, "vectors.a", "has length 2, not 3"),
        ({"vectors.a": np.ones((2, 1)), "text": np.array(["a"])}, "vectors.a", "has length 2, not 1"),
        ({"vectors.a": np.ones(2)}, "vectors.a", "must have two dimensions, documents and features, not 1"),
    ],
)
def test_wrong_named_vectors_are_named(gateway: Gateway, arrays: dict[str, Any], field: str, detail: str) -> None:
    headers = {"content-type": "application/x-npz"}
    fault = problem_of(gateway.client.post("/v1/datasets", content=npz(arrays), headers=headers), 422)["errors"][0]
    assert (fault["field"], fault["detail"]) == (field, detail)


def test_documents_come_back_as_they_were_sent(gateway: Gateway) -> None:
    sent = [*DOCUMENTS, {"id": "e", "text": "x", "features": {"n": 2.0}, "vectors": {"title": [0.0, 0.5, 1.0]}}]
    made = gateway.upload(sent)
    found = gateway.client.get(f"/v1/datasets/{made['id']}/documents").json()["documents"]
    fields = ("id", "text", "features", "vector", "vectors")
    assert [{name: each[name] for name in fields if each.get(name) is not None} for each in found] == [
        {name: document[name] for name in fields if name in document} for document in sent
    ]
    hits = gateway.client.get(f"/v1/datasets/{made['id']}/documents?contains=vote").json()["documents"]
    assert [each["id"] for each in hits] == ["b", "c"]


def test_vectors_are_equally_long_across_batches(gateway: Gateway) -> None:
    with gateway.unchanged():
        lines = as_lines([{"text": "word " * 100, "vector": [1, 2]}] * 2000 + [{"id": "x", "text": "a", "vector": [1]}])
        fault = problem_of(gateway.client.post("/v1/datasets", content=lines, headers={"content-type": NDJSON}), 422)[
            "errors"
        ][0]
        assert fault == {"document": "x", "field": "vector", "detail": "has 1 numbers, but earlier ones have 2"}


def test_parts_may_come_late_and_be_relabeled(gateway: Gateway) -> None:
    late = [{"text": "word " * 100}] * 3000 + [{"id": "x", "text": "late", "vector": [1, 2]}]
    made = gateway.client.post("/v1/datasets", content=as_lines(late), headers={"content-type": NDJSON}).json()
    assert [(part["name"], part["n_missing"]) for part in made["parts"]] == [("text", 0), ("vector", 3000)]
    changed = gateway.client.put(f"/v1/datasets/{made['id']}/labels", json={"labels": {"x": "sport"}}).json()
    rows = Datasets(gateway.store).open(changed["id"]).rows
    assert isinstance(rows, PartRows)
    vector = rows.parts["vector"].taken(np.array([3000]))
    assert isinstance(rows.parts["text"], TextRows)
    assert (changed["parts"], np.diff(vector.indptr).tolist()) == (made["parts"], [2])


def test_a_vector_alone_is_a_dense_document(gateway: Gateway) -> None:
    dense = gateway.upload([{"vector": [0.5, 0, 2]}, {"vector": [0, 0, 1]}])
    sparse = gateway.upload([{"indices": [0, 2], "values": [0.5, 2]}, {"indices": [2], "values": [1]}])
    assert (dense["kind"], dense["parts"], dense["sha256"]) == ("vectors", [], sparse["sha256"])


@pytest.fixture
def model() -> LinearModel:
    terms = fit_terms(
        TextRows.of(["goal late", "vote late"]), TextOptions(min_documents=1, ngrams=1), lambda done, held: None
    )
    columns = PartColumns([Block("text", terms, 3), Block("vector", NUMBERS, 2)])
    weights = np.array([[1.0], [0.0], [-1.0], [2.0], [-2.0]])
    return LinearModel(
        ["politics", "sport"], 5, np.arange(5, dtype=np.uint32), weights, np.zeros(1), vocabulary=columns
    )


def test_predictions_by_all_parts_and_by_some(gateway: Gateway, model: LinearModel) -> None:
    publish(gateway.store, model=model)
    answer = gateway.client.post(
        PREDICT, json={"documents": [{"text": "goal", "vector": [5, 0]}, {"vector": [0, 3]}, {"text": "vote"}]}
    ).json()
    assert answer["scores"] == [[3.0], [-2.0], [-1.0]]
    assert answer["warnings"] == [
        "1 of 3 documents have no text, by which the model goes, too",
        "1 of 3 documents have no vector, by which the model goes, too",
    ]
    lines = gateway.client.post(
        PREDICT, content=as_lines([{"vector": [0, 3]}]), headers={"content-type": NDJSON}
    ).json()
    assert lines["scores"] == [[-2.0]]
    body = npz({"text": np.array(["goal"]), "X": np.array([[5.0, 0.0]])})
    assert gateway.client.post(PREDICT, content=body, headers={"content-type": "application/x-npz"}).json()[
        "scores"
    ] == [[3.0]]


@pytest.mark.parametrize(
    ("document", "field", "detail"),
    [
        ({"text": "goal", "vector": [1, 2, 3]}, "vector", "has 3 numbers, where the model takes 2"),
        ({"text": "goal", "features": {"a": 1}}, "features", "was trained on text and vector and knows no features"),
        ({"vectors": {"title": [1, 2]}}, "vectors", "knows no vector.title"),
    ],
)
def test_refused_by_the_model(
    gateway: Gateway, model: LinearModel, document: dict[str, Any], field: str, detail: str
) -> None:
    publish(gateway.store, model=model)
    fault = problem_of(gateway.client.post(PREDICT, json={"documents": [document]}), 422)["errors"][0]
    assert fault["field"] == field
    assert detail in fault["detail"]


@pytest.mark.usefixtures("version")
def test_other_models_refuse_parts(gateway: Gateway) -> None:
    fault = problem_of(gateway.client.post(PREDICT, json={"documents": [{"indices": [1], "text": "a"}]}), 422)[
        "errors"
    ][0]
    assert (fault["field"], fault["detail"]) == (
        "text",
        "the model was trained on vectors and takes indices, not text and indices",
    )


def test_explanations_tell_by_part(gateway: Gateway, model: LinearModel) -> None:
    publish(gateway.store, model=model)
    answer = gateway.client.post(
        "/v1/models/news/explain", json={"documents": [{"text": "goal", "vector": [3, 4]}], "n": 2}
    ).json()
    document = answer["documents"][0]
    assert document["parts"] == {"text": pytest.approx(1.0), "vector": pytest.approx(2 * 0.6 - 2 * 0.8)}
    assert [(each["part"], each["name"]) for each in document["contributions"]] == [
        ("vector", "vector[1]"),
        ("vector", "vector[0]"),
    ]


def test_tensors_of_the_inference_protocol(gateway: Gateway, model: LinearModel) -> None:
    publish(gateway.store, model=model)
    inputs = gateway.client.get("/v2/models/news").json()["inputs"]
    assert [(each["name"], each["shape"]) for each in inputs] == [("text", [-1]), ("X", [-1, 2])]
    text = {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["goal"]}
    dense = {"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [5, 0]}
    outputs = gateway.client.post("/v2/models/news/infer", json={"inputs": [text, dense]}).json()["outputs"]
    assert next(each["data"] for each in outputs if each["name"] == "scores") == [3.0]
    answer = gateway.client.post(
        "/v2/models/news/infer", json={"inputs": [text, dense | {"shape": [2, 2], "data": [5, 0, 1, 1]}]}
    )
    assert answer.status_code == 400
    assert "different numbers of documents" in answer.text


def test_options_and_starts_of_a_job(gateway: Gateway, model: LinearModel) -> None:
    made = gateway.upload([*DOCUMENTS, {"id": "e", "text": "more", "vector": [1, 1], "label": "sport"}])
    job = gateway.client.post("/v1/jobs", json={"dataset": made["id"], "model": "m", "text": {"ngrams": 1}})
    assert job.status_code == 202, job.text
    publish(gateway.store, model=model)
    other = gateway.upload([document | {"features": {"n": 1}} for document in DOCUMENTS])
    body = {"dataset": other["id"], "model": "m", "algorithm": "svm", "start_from": "news"}
    fault = problem_of(gateway.client.post("/v1/jobs", json=body), 422)["errors"][0]
    assert fault["field"] == "start_from"
    assert "but the documents have features, text and vector; train without start_from" in fault["detail"]
