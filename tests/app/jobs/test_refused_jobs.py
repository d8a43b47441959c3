"""Jobs that are refused: nothing is stored or queued, and the error names the field."""

from typing import Any

import pytest

from storage.queue.queue import Queue
from tests.app.conftest import TWO_CLASSES, Gateway, problem_of

REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "unknown algorithm": (
        {"algorithm": "magic"},
        "unknown-algorithm",
        "algorithm",
        "known are auto, clusters, svm, tsvm, da",
    ),
    "unknown option": ({"options": {"lamda": 1}}, "invalid-option", "options.lamda", "known are"),
    "option of another algorithm": ({"options": {"lambda_u": 1}}, "invalid-option", "options.lambda_u", "known are"),
    "option out of range": ({"options": {"lambda": 0}}, "invalid-option", "options.lambda", "greater than"),
    "option of a wrong type": ({"options": {"lambda": "1"}}, "invalid-option", "options.lambda", "number"),
    "fraction": (
        {"algorithm": "tsvm", "options": {"positive_fraction": 1.5}},
        "invalid-option",
        "options.positive_fraction",
        "1",
    ),
    "class fractions": (
        {"algorithm": "da", "options": {"class_fractions": {"no": 1}}},
        "invalid-option",
        "options.class_fractions",
        "yes",
    ),
    "too many documents": (
        {"algorithm": "ctsvm", "options": {"max_documents": 2}},
        "invalid-option",
        "options.max_documents",
        "MB for dense matrices",
    ),
    "more clusters than documents": (
        {"algorithm": "clusters", "options": {"n_clusters": 50}},
        "invalid-option",
        "options.n_clusters",
        "the number of documents",
    ),
    "the rest of clusters": ({"algorithm": "clusters", "other": "rest"}, "invalid-request", "other", "labels of one"),
    "model with a slash": ({"model": "a/b"}, "invalid-name", "", "letters"),
    "model with a dot": ({"model": "../x"}, "invalid-name", "", "letters"),
    "no model name": ({"model": ""}, "invalid-name", "", "letters"),
    "negative seed": ({"seed": -1}, "invalid-request", "seed", "0"),
    "options are a list": ({"options": []}, "invalid-request", "options", "object"),
    "unknown field": ({"colour": "red"}, "invalid-request", "colour", "colour"),
    "both": ({"documents": TWO_CLASSES}, "invalid-request", "dataset", "either"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_jobs(gateway: Gateway, dataset: str, queue: Queue, name: str) -> None:
    changes, type, field, detail = REFUSED[name]
    with gateway.unchanged():
        problem = problem_of(gateway.job(**({"dataset": dataset} | changes)), 422)
        assert problem["type"] == f"/problems/{type}"
        assert detail in problem["detail"]
        if type != "invalid-name":
            assert problem["errors"][0]["field"] == field
    assert queue.depth() == 0


@pytest.mark.parametrize(
    ("documents", "detail"),
    [
        ([{"indices": [1], "label": "a"}, {"indices": [2]}], "'a' is the only class: label some of another"),
        ([{"indices": [1]}], "no document is labeled"),
        ([{"indices": [-1], "label": "a"}], "must be at least 0"),
        ([], "no document"),
        ("text", "documents in JSON are {"),
        (None, "either dataset or documents"),
    ],
)
def test_refused_documents_in_the_job(gateway: Gateway, queue: Queue, documents: Any, detail: str) -> None:
    problem = problem_of(gateway.job(documents=documents), 422)
    assert detail in problem["detail"]
    assert gateway.kept() == []
    assert queue.depth() == 0


@pytest.mark.parametrize("known", [{"label": "a"}, {"label": "a", "votes": {"v": "a"}}, {"votes": {"v": "a"}}])
def test_few_labels_of_one_class_are_refused_at_once(gateway: Gateway, queue: Queue, known: dict[str, Any]) -> None:
    documents = [{"indices": [1]} | known, {"indices": [2]} | known, {"indices": [3]}]
    problem = problem_of(gateway.job(documents=documents, algorithm="auto"), 422)
    n_labels = 2 if "label" in known else 0
    assert problem["detail"] == (
        f"label: 'a' is the only class, and {n_labels} of its documents have a label: label 3 or more, or some of "
        "another class"
    )
    assert problem["errors"][0]["field"] == "label"
    assert gateway.kept() == []
    assert queue.depth() == 0


@pytest.mark.parametrize("named", [{}, {"algorithm": "auto"}, {"algorithm": "kernel_svm"}, {"algorithm": "ctsvm"}])
@pytest.mark.usefixtures("dataset", "unchanged")
def test_a_start_that_is_of_no_use_is_refused(
    gateway: Gateway, dataset: str, queue: Queue, named: dict[str, str]
) -> None:
    problem = problem_of(
        gateway.client.post("/v1/jobs", json={"dataset": dataset, "model": "news", "start_from": "news"} | named), 422
    )
    assert problem["errors"][0]["field"] == "start_from"
    detail = "cannot start from a model; algorithms that can are svm, tsvm, da, cuts3vm, ramp_svm, cccp_tsvm"
    assert f"{named.get('algorithm', 'auto')} {detail}" in problem["detail"]
    assert queue.depth() == 0


@pytest.mark.parametrize("named", ["none@here", "news/1", "news/abc", "news/", "news/" + "9" * 5000, "@", ""])
@pytest.mark.usefixtures("dataset", "unchanged")
def test_a_start_from_no_model(gateway: Gateway, dataset: str, queue: Queue, named: str) -> None:
    problem = problem_of(gateway.job(dataset=dataset, start_from=named), 404)
    assert named[:10] in problem["detail"]
    assert queue.depth() == 0


def test_a_dataset_with_one_class(gateway: Gateway, queue: Queue) -> None:
    made = gateway.upload(TWO_CLASSES[:1])
    with gateway.unchanged():
        problem = problem_of(gateway.job(dataset=made["id"]), 422)
    assert problem["type"] == "/problems/invalid-documents"
    assert "at least two classes" in problem["detail"]
    assert [(error["field"], "label some of" in error["detail"]) for error in problem["errors"]] == [("label", True)]
    assert queue.depth() == 0


def test_clusters_need_no_label(gateway: Gateway, queue: Queue) -> None:
    documents = [{"indices": [number]} for number in range(3)]
    answer = gateway.job(documents=documents, algorithm="clusters", options={"n_clusters": 2})
    assert (answer.status_code, queue.depth()) == (202, 1)


_LISTED = "; the list of datasets has all"
_ASKS_FOR_AN_ID = "; a dataset goes by the id that its upload answered, as in ds-06h0…"


@pytest.mark.parametrize(
    ("id", "remedy"), [("ds-nothing", _LISTED), ("../../etc", _ASKS_FOR_AN_ID), ("ds-" + "0" * 24, _LISTED)]
)
def test_an_unknown_dataset(gateway: Gateway, id: str, remedy: str) -> None:
    problem = problem_of(gateway.job(dataset=id), 404)
    assert problem["detail"] == f"there is no dataset {id!r}{remedy}"
    assert gateway.kept() == []


@pytest.mark.parametrize("body", [b"{", b"", b"[]", b'{"model": "x"}', b"\xff", b'{"model": "\xff"}'])
def test_bodies_that_are_no_request(gateway: Gateway, body: bytes) -> None:
    answer = gateway.client.post("/v1/jobs", content=body, headers={"content-type": "application/json"})
    assert problem_of(answer, 422)["type"] == "/problems/invalid-request"
    assert gateway.kept() == []


def test_a_missing_field_is_named(gateway: Gateway) -> None:
    body = {"algorithm": "svm", "dataset": "x"}
    assert problem_of(gateway.client.post("/v1/jobs", json=body), 422)["errors"][0]["field"] == "model"


@pytest.mark.parametrize(
    ("documents", "detail"),
    [
        (
            b'[{"indices": [1], "values": [1e999], "label": "a"}]',
            "document number 1: values: a number is out of range: beyond 1.8e308",
        ),
        (b'[{"indices": [1], "label": ' + b"9" * 5000 + b"}]", "document number 1: label: Integer value out of range"),
        (b'[{"text": "\xff"}]', "document number 1: text: the byte 0xff is not UTF-8"),
    ],
)
def test_a_key_does_not_change_how_documents_are_refused(gateway: Gateway, documents: bytes, detail: str) -> None:
    for headers in ({}, {"Idempotency-Key": "k"}):
        body = b'{"model": "news", "algorithm": "svm", "documents": ' + documents + b"}"
        answer = gateway.client.post("/v1/jobs", content=body, headers={"Content-Type": "application/json", **headers})
        assert problem_of(answer, 422)["detail"].startswith(detail)
    assert gateway.kept() == []
