"""Explanations over HTTP."""

import gzip
import json
from typing import Any

import httpx
import numpy as np
import pytest

from core.models.model import LinearModel
from core.train import TrainingTask, train
from storage.repositories.datasets import Datasets
from tests.app.conftest import Gateway, body_of, problem_of, publish
from tests.stores import make_dataset, sparse

DOCUMENTS = [{"id": "x", "indices": [0, 1], "values": [2.0, 0.5]}, {"indices": [1, 2], "values": [0.5, 9.0]}]


def explain(gateway: Gateway, body: Any = None, path: str = "news/explain") -> dict[str, Any]:
    return body_of(gateway.client.post(f"/v1/models/{path}", json=body))


def test_a_model_of_two_classes(gateway: Gateway) -> None:
    publish(gateway.store, bias=0.25)
    assert explain(gateway) == {
        "model": "news",
        "version": 1,
        "family": "linear",
        "classes": ["no", "yes"],
        "weights": [
            {
                "class": "yes",
                "bias": 0.25,
                "for": [{"feature": 1, "weight": 1.0}],
                "against": [{"feature": 0, "weight": -1.0}],
            }
        ],
        "documents": [],
        "warnings": [],
    }


def test_documents_of_two_classes(gateway: Gateway) -> None:
    publish(gateway.store, bias=0.25)
    first, second = explain(gateway, {"documents": DOCUMENTS, "n": 1})["documents"]
    assert first == {
        "id": "x",
        "label": "no",
        "class": "yes",
        "score": -1.25,
        "bias": 0.25,
        "contributions": [{"feature": 0, "weight": -1.0, "value": 2.0, "contribution": -2.0}],
        "rest": 0.5,
    }
    assert (second["id"], second["label"], second["score"], second["rest"]) == ("1", "yes", 0.75, 0.0)


def test_every_class_of_three_has_weights_and_documents_are_explained_by_their_own(gateway: Gateway) -> None:
    publish(gateway.store, classes=("a", "b", "c"))
    found = explain(gateway, {"documents": DOCUMENTS})
    assert [(each["class"], each["for"], each["against"]) for each in found["weights"]] == [
        (label, [{"feature": feature, "weight": 1.0}], []) for feature, label in enumerate("abc")
    ]
    assert [(each["label"], each["class"], each["score"]) for each in found["documents"]] == [
        ("a", "a", 2.0),
        ("c", "c", 9.0),
    ]
    other = explain(gateway, {"documents": DOCUMENTS, "class": "b"})["documents"]
    assert [(each["label"], each["class"], each["score"]) for each in other] == [("a", "b", 0.5), ("c", "b", 0.5)]


def test_scores_are_those_of_a_prediction(gateway: Gateway) -> None:
    publish(gateway.store, classes=("a", "b", "c"), bias=0.5)
    documents = [{"indices": [0, 7], "values": [0.1, 3.0]}, {"indices": []}, {"indices": [2, 1], "values": [-3.5, 0.7]}]
    predicted = gateway.client.post("/v1/models/news/predict", json={"documents": documents}).json()
    found = explain(gateway, {"documents": documents})
    for document, label, scores in zip(found["documents"], predicted["labels"], predicted["scores"], strict=True):
        assert document["label"] == document["class"] == label
        total = document["bias"] + document["rest"] + sum(term["contribution"] for term in document["contributions"])
        assert document["score"] == pytest.approx(total, abs=1e-12)
        assert document["score"] == pytest.approx(max(scores), abs=1e-12)
    assert found["warnings"] == predicted["warnings"]
    assert found["warnings"][0] == "1 of 4 values are of features that the model has not seen; they count as zero"


def kernel_version(gateway: Gateway) -> tuple[str, list[str]]:
    """A published kernel model; the dataset it was trained on, and the ids of that."""
    dataset = make_dataset(gateway.store)
    documents = Datasets(gateway.store).open(dataset.id)
    model = train(
        TrainingTask(
            sparse(documents.rows), np.array(documents.class_indices), ["no", "yes"], "cccp_tsvm", {"gamma": 0.5}
        )
    ).model
    publish(gateway.store, dataset=dataset.id, model=model)
    return dataset.id, list(documents.ids)


def test_a_kernel_model_shows_training_documents(gateway: Gateway) -> None:
    dataset, ids = kernel_version(gateway)
    documents = Datasets(gateway.store).open(dataset)
    row = sparse(documents.rows).between(3, 4)
    span = slice(int(row.indptr[0]), int(row.indptr[1]))
    asked = {"id": "again", "indices": row.indices[span].tolist(), "values": row.values[span].tolist()}
    found = explain(gateway, {"documents": [asked], "n": 3})
    assert found["family"] == "kernel"
    for side in ("for", "against"):
        shown = found["weights"][0][side]
        assert 0 < len(shown) <= 3
        assert all(ids[each["position"]] == each["id"] for each in shown)
        assert all((each["weight"] > 0) == (side == "for") for each in shown)
    (document,) = found["documents"]
    terms = document["contributions"]
    assert all(ids[each["position"]] == each["id"] for each in terms)
    assert [each["value"] for each in terms] == sorted((each["value"] for each in terms), reverse=True)
    assert document["score"] == pytest.approx(
        document["bias"] + document["rest"] + sum(each["contribution"] for each in terms)
    )
    predicted = gateway.client.post("/v1/models/news/predict", json={"documents": [asked]}).json()
    assert document["score"] == pytest.approx(predicted["scores"][0][0])


def test_positions_are_left_when_the_dataset_is_gone(gateway: Gateway) -> None:
    dataset, _ = kernel_version(gateway)
    Datasets(gateway.store).delete(dataset)
    shown = explain(gateway, {"n": 2})["weights"][0]["for"]
    assert all(each["id"] is None and each["position"] >= 0 for each in shown)


def test_only_as_many_as_asked_for(gateway: Gateway) -> None:
    model = LinearModel(
        ["no", "yes"], 500, np.arange(500, dtype=np.uint32), np.linspace(-1, 1, 500)[:, None], np.zeros(1)
    )
    publish(gateway.store, model=model)
    weights = explain(gateway, {"n": 7})["weights"][0]
    assert [each["feature"] for each in weights["for"]] == list(range(499, 492, -1))
    assert [each["feature"] for each in weights["against"]] == list(range(7))
    assert len(explain(gateway)["weights"][0]["for"]) == 10


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"n": 0}, "n"),
        ({"n": 101}, "n"),
        ({"n": "3"}, "n"),
        ({"class": "maybe"}, "class"),
        ({"class": 1}, "class"),
        ({"documents": []}, "documents"),
        ({"documents": {}}, "documents"),
        ({"documents": [{"indices": [3, 3]}]}, "indices"),
        ({"labels": {}}, "labels"),
    ],
)
def test_what_is_refused(gateway: Gateway, body: dict[str, Any], field: str) -> None:
    problem = problem_of(gateway.client.post("/v1/models/news/explain", json=body), 422)
    assert problem["errors"][0]["field"] == field


@pytest.mark.usefixtures("version")
def test_too_many_documents(gateway: Gateway) -> None:
    assert len(explain(gateway, {"documents": [{"indices": [1]}] * 100})["documents"]) == 100
    problem = problem_of(
        gateway.client.post("/v1/models/news/explain", json={"documents": [{"indices": [1]}] * 101}), 413
    )
    assert problem["detail"] == "more than 100 documents"


@pytest.mark.usefixtures("version")
def test_bodies_of_other_kinds(gateway: Gateway) -> None:

    def post(content: bytes | None, **headers: str) -> httpx.Response:
        return gateway.client.post(
            "/v1/models/news/explain",
            content=content,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    packed = gzip.compress(json.dumps({"documents": DOCUMENTS}).encode())
    assert len(post(packed, content_type="application/json", content_encoding="gzip").json()["documents"]) == 2
    problem_of(post(b"0 1:1\n", content_type="text/x-svmlight"), 415)
    problem_of(post(b"{}"), 415)
    problem_of(post(b"", content_type="application/json"), 422)
