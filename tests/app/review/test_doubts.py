"""Doubts about labels, over HTTP."""

from typing import Any

import numpy as np
import pytest

from core.models.model import LinearModel
from core.validation.label_calibration import LabelCalibration
from tests.app.conftest import Gateway, annotate, problem_of, publish

LABELED: list[dict[str, Any]] = [
    {
        "id": f"d{k}",
        "indices": [0, 1, 2 + k],
        "values": [1.0 + k % 2, 2.0 - k % 2, 5.0],
        "label": "yes" if k < 3 else "no",
    }
    for k in range(6)
]
LEFT_OUT = {0: [0.1, 0.9], 1: [0.7, 0.3], 2: [0.95, 0.05], 3: [0.8, 0.2], 4: [0.45, 0.55], 5: [0.9, 0.1]}
"""Probabilities of no and yes: d2, d1 and d4 are doubtful, in this order."""


def doubts(gateway: Gateway, dataset: str, path: str = "news/doubts", **body: Any) -> list[dict[str, Any]]:
    answer = gateway.client.post(f"/v1/models/{path}", json={"dataset": dataset, **body})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["doubts"]
    return found


@pytest.fixture
def dataset(gateway: Gateway) -> str:
    dataset = str(gateway.upload([*LABELED, {"id": "u", "indices": [0]}])["id"])
    publish(gateway.store, dataset=dataset, left_out=LEFT_OUT)
    return dataset


def test_the_most_doubtful_labels_come_first(gateway: Gateway, dataset: str) -> None:
    found = doubts(gateway, dataset)
    assert [(each["id"], each["label"], each["likelier"]) for each in found] == [
        ("d2", "yes", "no"),
        ("d1", "yes", "no"),
        ("d4", "no", "yes"),
    ]
    assert [each["probability"] for each in found] == pytest.approx([0.05, 0.3, 0.45])
    assert {each["why"] for each in found} == {"held_out"}
    assert doubts(gateway, dataset, path="news/versions/1/doubts", n=1) == found[:1]
    document = doubts(gateway, dataset, n=1, include=["document"])[0]["document"]
    assert (document["id"], document["indices"], document["label"]) == ("d2", [0, 1, 4], "yes")


def test_what_people_looked_at_since_is_not_doubted(gateway: Gateway, dataset: str) -> None:
    annotate(gateway, dataset, {"document": "d2", "label": "yes"}, {"document": "d1", "label": "no"})
    assert [each["id"] for each in doubts(gateway, dataset)] == ["d4"]


def test_documents_that_are_nearly_the_same_contradict_each_other(gateway: Gateway) -> None:
    same: dict[str, Any] = {"indices": [0, 1], "values": [1.0, 2.0]}
    lines = [
        {"id": "a", **same, "label": "no"},
        {"id": "b", **same, "label": "yes"},
        {"id": "c", "indices": [2], "label": "no"},
        {"id": "d", "indices": [2], "label": "no"},
    ]
    dataset = str(gateway.upload(lines)["id"])
    publish(gateway.store, dataset=dataset, left_out={0: [0.9, 0.1], 1: [0.2, 0.8], 2: [0.9, 0.1]})
    fields = {"applies": None, "probability": None, "why": "duplicate", "other": "a", "document": None}
    found = [{"document": None, **each} for each in doubts(gateway, dataset)]
    assert found == [{"id": "b", "label": "yes", "likelier": "no", **fields}]
    annotate(gateway, dataset, {"document": "b", "label": "no"})
    assert doubts(gateway, dataset) == []


def test_of_several_labels_each_is_doubted_by_itself(gateway: Gateway) -> None:
    same: dict[str, Any] = {"indices": [2], "values": [1.0]}
    lines = [
        {"id": "wrong", "indices": [0], "labels": ["corn", "ship"]},
        {"id": "missing", "indices": [1], "labels": []},
        {"id": "part", "indices": [3], "not": ["ship"]},
        {"id": "sure", **same, "labels": ["ship"]},
        {"id": "twin", **same, "labels": ["corn", "ship"]},
    ]
    dataset = str(gateway.upload(lines)["id"])
    model = LinearModel(
        ["corn", "ship"],
        4,
        np.arange(4, dtype=np.uint32),
        np.zeros((4, 2)),
        np.zeros(2),
        calibration=LabelCalibration(np.ones(2), np.zeros(2), np.full(2, 0.5)),
    )
    left_out = {0: [0.9, 0.125], 1: [0.75, 0.25], 2: [np.nan, 0.625], 3: [0.0, 1.0], 4: [1.0, 1.0]}
    publish(gateway.store, dataset=dataset, model=model, left_out=left_out)
    answer = gateway.client.post("/v1/models/news/doubts", json={"dataset": dataset}).json()
    found = [(each["id"], each["label"], each["applies"], each["probability"]) for each in answer["doubts"]]
    assert found == [
        ("wrong", "ship", True, 0.125),
        ("missing", "corn", False, 0.25),
        ("part", "ship", False, 0.375),
        ("twin", "corn", True, None),
    ]
    assert answer["n_labeled"] == 9
    annotate(gateway, dataset, {"document": "wrong", "labels": ["corn"]}, {"document": "twin", "labels": ["ship"]})
    assert [each["id"] for each in doubts(gateway, dataset)] == ["missing", "part"]


def test_a_version_that_left_nothing_out_says_the_remedy(gateway: Gateway, dataset: str) -> None:
    publish(gateway.store, "other", dataset=dataset)
    problem = problem_of(gateway.client.post("/v1/models/other/doubts", json={"dataset": dataset}), 409)
    assert "train one on labels of two classes, with auto" in problem["detail"]


def test_other_documents_are_refused(gateway: Gateway, dataset: str) -> None:
    other = gateway.upload(LABELED)["id"]
    problem = problem_of(gateway.client.post("/v1/models/news/doubts", json={"dataset": other}), 422)
    assert "other documents" in problem["detail"]
