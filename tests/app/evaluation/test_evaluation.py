"""Evaluations over HTTP, also on a disk that has no room for their scores."""

import errno
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from core.evaluation.measures import Reliability
from core.models.model import LinearModel
from storage.records import Version
from tests.app.codecs.encodings import ENCODERS
from tests.app.conftest import (
    NDJSON,
    TWO_CLASSES,
    Gateway,
    Start,
    named_model,
    problem_of,
    publish,
    text_model,
)
from tests.app.evaluation.evaluations import Documents, drawn, evaluate
from tests.stores import no_file_beyond

NAMES = ["a", "b", "c"]


def check(found: dict[str, Any], gateway: Gateway, documents: Documents, labels: list[Any]) -> None:
    """Check figures against scikit-learn's for the answers of /predict; ``labels`` are all, in order."""
    predicted = gateway.client.post("/v1/models/news/predict", json={"documents": documents}).json()
    kept = [place for place, document in enumerate(documents) if document.get("label") is not None]
    truth = [labels.index(documents[place]["label"]) for place in kept]
    answer = [labels.index(predicted["labels"][place]) for place in kept]
    every = list(range(len(labels)))
    assert (found["documents"], found["labeled"]) == (len(documents), len(kept))
    assert [each["label"] for each in found["classes"]] == labels
    assert found["confusion"] == metrics.confusion_matrix(truth, answer, labels=every).tolist()
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        truth, answer, labels=every, zero_division=np.nan
    )
    for name, expected in (("precision", precision), ("recall", recall), ("f1", f1)):
        assert [np.nan if each[name] is None else each[name] for each in found["classes"]] == pytest.approx(
            list(expected), nan_ok=True
        )
    assert [each["documents"] for each in found["classes"]] == support.tolist()
    assert found["accuracy"] == found["micro_f1"] == pytest.approx(metrics.accuracy_score(truth, answer))
    assert found["error"] == pytest.approx(1 - found["accuracy"])
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(truth, answer, average="macro"))
    scores = np.array(predicted["scores"])[kept]
    scores = np.column_stack([-scores, scores]) if scores.shape[1] == 1 else scores
    for class_index, each in enumerate(found["classes"]):
        positive = np.array(truth) == class_index
        if class_index < scores.shape[1] and positive.any():
            assert each["average_precision"] == pytest.approx(
                metrics.average_precision_score(positive, scores[:, class_index])
            )
            best = np.argsort(-scores[:, class_index])[: positive.sum()]
            assert each["break_even"] == pytest.approx(positive[best].mean())
            assert each["curve"][-1][0] == 1
        else:
            assert each["break_even"] is each["average_precision"] is each["curve"] is None
    check_calibration(found["calibration"], predicted["probabilities"], kept, truth)


def check_calibration(
    found: dict[str, Any], probabilities: list[list[float]], kept: list[int], truth: list[int]
) -> None:
    expected = Reliability.of(np.array(probabilities)[kept], np.array(truth))
    assert found["expected_error"] == pytest.approx(expected.expected_error)
    assert found["brier"] == pytest.approx(expected.brier)
    assert found["log_loss"] == pytest.approx(expected.log_loss)
    assert sum(each["documents"] for each in found["bins"]) == len(truth)


@pytest.mark.parametrize("classes", [["no", "yes"], NAMES, [-3, 7], [1, 5, 20]], ids=str)
def test_figures_are_those_of_scikit_learn(gateway: Gateway, classes: list[Any]) -> None:
    publish(gateway.store, classes=classes, calibrated=True)
    documents = drawn(classes)
    posted = evaluate(gateway, {"documents": documents})
    check(posted, gateway, documents, classes)
    assert posted["dataset"] is None
    assert posted["warnings"] == []
    dataset = gateway.upload(documents)["id"]
    stored = evaluate(gateway, {"dataset": dataset})
    assert stored["dataset"] == dataset
    without = {"dataset", "evaluated_at", "told"}
    assert {key: stored[key] for key in stored.keys() - without} == {
        key: posted[key] for key in posted.keys() - without
    }


@pytest.mark.parametrize("media_type", ENCODERS)
def test_every_format_is_evaluated_alike(gateway: Gateway, media_type: str) -> None:
    publish(gateway.store, classes=[1, 2])
    documents = drawn([1, 2], 8_000)
    answer = gateway.client.post(
        "/v1/models/news/evaluate", content=ENCODERS[media_type](documents), headers={"Content-Type": media_type}
    )
    assert answer.status_code == 200, answer.text
    expected = evaluate(gateway, {"dataset": gateway.upload(documents)["id"]})
    assert answer.json()["confusion"] == expected["confusion"]
    assert answer.json()["macro_break_even"] == pytest.approx(expected["macro_break_even"])
    assert (answer.json()["documents"], answer.json()["labeled"]) == (8_000, 7_200)


def test_labels_that_the_model_does_not_know_count_as_errors(gateway: Gateway) -> None:
    publish(gateway.store, classes=NAMES, calibrated=True)
    documents = [
        *drawn(NAMES, 100),
        *({"indices": [0], "values": [1.0], "label": label} for label in ("z", "Ärger", "z")),
    ]
    found = evaluate(gateway, {"documents": documents})
    check(found, gateway, documents, [*NAMES, "z", "Ärger"])
    assert [each["known"] for each in found["classes"]] == [True, True, True, False, False]
    assert found["warnings"] == ["3 labels of documents are unknown to the model; they count as errors: 'z', 'Ärger'"]
    stored = evaluate(gateway, {"dataset": gateway.upload(documents)["id"]})
    assert (stored["confusion"], stored["classes"]) == (found["confusion"], found["classes"])


def test_a_label_of_another_type_is_another_label(gateway: Gateway) -> None:
    publish(gateway.store, classes=[1, 2])
    found = evaluate(gateway, {"documents": [{"indices": [0], "label": "1"}, {"indices": [0], "label": "2"}]})
    assert found["accuracy"] == 0
    assert [each["label"] for each in found["classes"]] == [1, 2, "1", "2"]


def test_a_class_without_documents_has_no_figures(gateway: Gateway) -> None:
    publish(gateway.store, classes=NAMES, calibrated=True)
    documents = [
        {"indices": [0, 1], "values": [1 - place / 500, place / 100], "label": "a" if place < 60 else "b"}
        for place in range(200)
    ]
    found = evaluate(gateway, {"documents": documents})
    check(found, gateway, documents, NAMES)
    assert found["classes"][2] == {
        "label": "c",
        "known": True,
        "documents": 0,
        "given": 0,
        **dict.fromkeys(("precision", "recall", "f1", "break_even", "average_precision", "curve")),
    }
    assert found["macro_f1"] == pytest.approx((found["classes"][0]["f1"] + found["classes"][1]["f1"]) / 2)


@pytest.mark.usefixtures("version")
def test_a_model_without_probabilities_has_no_calibration(gateway: Gateway) -> None:
    assert evaluate(gateway, {"documents": drawn(["no", "yes"])})["calibration"] is None


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "dataset"),
        ({"documents": None}, 422, "dataset"),
        ({"dataset": "ds-1", "documents": TWO_CLASSES}, 422, "dataset"),
        ({"dataset": "ds-1"}, 404, None),
        ({"dataset": 3}, 422, "dataset"),
        ({"datasets": "x"}, 422, None),
        ({"documents": []}, 422, "documents"),
        ({"documents": [{"indices": [1]}]}, 422, "label"),
        ({"documents": [{"indices": [1, 1], "label": "no"}]}, 422, "indices"),
        ({"documents": [{"indices": [1], "label": "no"}, {"id": "x", "indices": [1], "label": 4}]}, 422, "label"),
        ({"documents": [{"indices": [1], "label": "no", "text": "x"}]}, 422, None),
        ({"documents": TWO_CLASSES, "held_out": True}, 422, "held_out"),
        ({"documents": [{"indices": [1], "not": ["x", "x"]}]}, 422, "not"),
        ({"documents": [{"indices": [1], "not": ["x"], "label": "no"}]}, 422, "not"),
        ({"documents": [{"indices": [1], "not": ["x", 3]}]}, 422, "not"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("unchanged")
def test_what_is_refused(gateway: Gateway, body: dict[str, Any], status: int, field: str | None) -> None:
    problem = problem_of(gateway.client.post("/v1/models/news/evaluate", json=body), status)
    if field:
        assert problem["errors"][0]["field"] == field


@pytest.mark.usefixtures("version")
def test_faults_name_the_document(gateway: Gateway) -> None:
    lines = [json.dumps({"indices": [1], "label": "no"}) for _ in range(30_000)]
    for id, name in (("x", "x"), (None, "30000")):
        body = "\n".join([*lines, json.dumps({"id": id, "indices": [1], "label": 4})])
        problem = problem_of(
            gateway.client.post("/v1/models/news/evaluate", content=body, headers={"Content-Type": NDJSON}), 422
        )
        assert problem["errors"] == [
            {"document": name, "field": "label", "detail": "labels must be all strings or all integers"}
        ]


def test_a_dataset_without_labels_and_one_of_too_many_classes(start: Start) -> None:
    gateway = start(max_classes=2)
    publish(gateway.store)
    problem = problem_of(
        gateway.client.post("/v1/models/news/evaluate", json={"dataset": gateway.upload([{"indices": [1]}])["id"]}), 422
    )
    assert problem["errors"][0]["field"] == "label"
    documents = [{"indices": [1], "label": label} for label in NAMES]
    problem_of(gateway.client.post("/v1/models/news/evaluate", json={"documents": documents}), 413)


def trained(gateway: Gateway) -> tuple[Version, Documents]:
    """A model of a dataset with ten labeled documents at its start, and its documents with all their labels."""
    documents: Documents = [{"indices": [place % 2], "label": ("no", "yes")[place % 2]} for place in range(30)]
    known = [document if place < 10 else {"indices": document["indices"]} for place, document in enumerate(documents)]
    return publish(gateway.store, dataset=gateway.upload(known)["id"]), documents


def optimistic(labeled: int, n: int) -> str:
    return f"{labeled} of the {n} labeled documents were trained on with their labels: the figures are too optimistic"


def unlabeled(others: int, n: int) -> str:
    return f"{others} of the {n} labeled documents were trained on without their labels"


def test_labels_that_were_trained_on_are_reported(gateway: Gateway) -> None:
    version, documents = trained(gateway)
    assert evaluate(gateway, {"dataset": version.dataset})["warnings"] == [optimistic(10, 10)]
    answer = gateway.client.put(
        f"/v1/datasets/{version.dataset}/labels", json={"labels": {"20": "no", "21": "no"}, "drawn": {"20": "random"}}
    )
    relabeled = evaluate(gateway, {"dataset": answer.json()["id"]})
    assert relabeled["warnings"] == [optimistic(10, 12), unlabeled(2, 12)]
    assert (relabeled["documents"], relabeled["labeled"]) == (30, 12)
    again = [{"id": f"x{place}", **document} for place, document in enumerate(documents)]
    assert evaluate(gateway, {"dataset": gateway.upload(again)["id"]})["warnings"] == [
        optimistic(10, 30),
        unlabeled(20, 30),
    ]
    assert evaluate(gateway, {"dataset": gateway.upload(documents[:-1])["id"]})["warnings"] == []


def test_labels_that_were_trained_on_are_left_out(gateway: Gateway) -> None:
    version, documents = trained(gateway)
    dataset = gateway.upload([*documents[:20], {"indices": [0], "label": "yes"}, *documents[21:]])["id"]
    found = evaluate(gateway, {"dataset": dataset, "held_out": True})
    assert (found["documents"], found["labeled"], found["told"], found["warnings"]) == (30, 20, 0, [unlabeled(20, 20)])
    assert evaluate(gateway, {"dataset": version.dataset})["told"] == 10
    assert found["confusion"] == [[9, 0], [1, 10]]
    problem = problem_of(
        gateway.client.post("/v1/models/news/evaluate", json={"dataset": version.dataset, "held_out": True}), 422
    )
    assert problem["errors"][0]["field"] == "label"
    other = gateway.upload(documents[:15])["id"]
    assert evaluate(gateway, {"dataset": other, "held_out": True})["labeled"] == 15


def test_the_overlap_with_a_deleted_training_dataset_is_unknown(gateway: Gateway) -> None:
    version, documents = trained(gateway)
    dataset = gateway.upload(documents[:7])["id"]
    assert gateway.client.delete(f"/v1/datasets/{version.dataset}").status_code == 204
    warnings = evaluate(gateway, {"dataset": dataset})["warnings"]
    assert warnings == [
        f"whether the model was trained on these labels is unknown: dataset '{version.dataset}' was deleted"
    ]
    problem = problem_of(
        gateway.client.post("/v1/models/news/evaluate", json={"dataset": dataset, "held_out": True}), 422
    )
    assert problem["errors"][0]["field"] == "held_out"


def test_documents_of_a_body_that_were_trained_on_are_reported(gateway: Gateway) -> None:
    """As a file is that was trained on and is evaluated on again."""
    known: Documents = [{"indices": [0, 1], "values": [1, k], "label": ("no", "yes")[k % 2]} for k in range(2, 10)]
    fresh: Documents = [{"indices": [0], "values": [k], "label": "no"} for k in range(2, 5)]
    dataset = gateway.upload([*known, {"indices": [0], "values": [2]}])["id"]
    publish(gateway.store, dataset=dataset)
    found = evaluate(gateway, {"documents": [*known[:4], *fresh]})
    assert (found["told"], found["warnings"]) == (4, [optimistic(4, 7)])
    found = evaluate(gateway, {"documents": fresh})
    assert (found["told"], found["warnings"]) == (0, [])
    gateway.client.delete(f"/v1/datasets/{dataset}")
    assert evaluate(gateway, {"documents": known})["told"] is None


def test_scores_beyond_the_limit_are_not_ranked(start: Start) -> None:
    gateway = start(max_ranked_scores=269)
    publish(gateway.store)
    documents = drawn(["no", "yes"])
    found = evaluate(gateway, {"documents": documents})
    assert found["labeled"] == 270
    assert [(each["break_even"], each["average_precision"], each["curve"]) for each in found["classes"]] == [
        (None, None, None)
    ] * 2
    assert (found["macro_break_even"], len(found["warnings"])) == (None, 1)
    assert found["accuracy"] > 0.7
    assert evaluate(gateway, {"documents": documents[:-2]})["warnings"] == []


def test_curves_of_the_most_frequent_labels_alone(gateway: Gateway) -> None:
    classes = [f"c{class_index:02}" for class_index in range(25)]
    publish(gateway.store, classes=classes)
    documents = [
        {"indices": [class_index], "label": classes[class_index]}
        for class_index in range(25)
        for _ in range(class_index + 1)
    ]
    found = evaluate(gateway, {"documents": documents})
    assert [each["curve"] is None for each in found["classes"]] == [True] * 5 + [False] * 20
    assert found["macro_break_even"] == 1


@pytest.mark.usefixtures("unchanged")
def test_nothing_is_left_behind(gateway: Gateway) -> None:
    evaluate(gateway, {"documents": drawn(["no", "yes"])})


TEXTS: Documents = [
    {"text": "a goal", "label": "sport"},
    {"text": "vote goal vote", "label": "politics"},
    {"text": "new", "label": "sport"},
]
NAMED: Documents = [{"features": {"goal": 1}}, {"features": {"vote": 2, "goal": 1}}, {"features": {}}]
KINDS = [
    (text_model, TEXTS),
    (named_model, [{**named, "label": text["label"]} for named, text in zip(NAMED, TEXTS, strict=True)]),
]


@pytest.mark.parametrize(("makes", "documents"), KINDS, ids=["text", "features"])
def test_documents_of_other_kinds(gateway: Gateway, makes: Callable[[], LinearModel], documents: Documents) -> None:
    dataset = gateway.upload(
        [
            {key: value for key, value in document.items() if place or key != "label"}
            for place, document in enumerate(documents)
        ]
    )
    publish(gateway.store, model=makes(), dataset=dataset["id"])
    posted = evaluate(gateway, {"documents": documents})
    assert posted["confusion"] == [[1, 0], [1, 1]]
    again = gateway.client.put(f"/v1/datasets/{dataset['id']}/labels", json={"labels": {"0": "sport"}}).json()["id"]
    stored = evaluate(gateway, {"dataset": again})
    assert stored["classes"] == posted["classes"]
    assert stored["warnings"] == [optimistic(2, 3), unlabeled(1, 3), *posted["warnings"][1:]]
    held_out = evaluate(gateway, {"dataset": again, "held_out": True})
    assert (held_out["labeled"], held_out["accuracy"]) == (1, 1)
    other = gateway.upload(TWO_CLASSES)["id"]
    for body, field in (({"dataset": other}, "dataset"), ({"documents": TWO_CLASSES}, "indices")):
        assert (
            problem_of(gateway.client.post("/v1/models/news/evaluate", json=body), 422)["errors"][0]["field"] == field
        )


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("room", [0, 100])
@pytest.mark.parametrize("by_dataset", [False, True])
def test_a_full_disk_is_reported(gateway: Gateway, room: int, by_dataset: bool) -> None:
    body = {"dataset": gateway.upload(TWO_CLASSES)["id"]} if by_dataset else {"documents": TWO_CLASSES * 200}
    with gateway.unchanged():
        with no_file_beyond(room):
            answer = gateway.client.post("/v1/models/news/evaluate", json=body)
        assert answer.status_code in (200, 507), answer.text
        if room == 0:
            assert problem_of(answer, 507)["type"] == "/problems/insufficient-storage"


@pytest.mark.usefixtures("version")
def test_a_disk_on_which_no_file_can_be_made_is_reported(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:

    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("app.http.answers.tempfile.TemporaryFile", full)
    problem_of(gateway.client.post("/v1/models/news/evaluate", json={"documents": TWO_CLASSES}), 507)
    assert [path for path in gateway.kept() if ".staging" in path] == []
