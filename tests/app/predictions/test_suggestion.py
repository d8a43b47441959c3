"""Suggestions of documents to label, over HTTP; also by a model that knows too little to choose any."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from app.predictions import scoring
from app.predictions.suggestion import ignorance
from core.evaluation import active_learning as querying
from core.models.model import LinearModel
from core.validation.calibration import Calibration
from storage.records import ConfidenceLevel, HeldOut, Version
from tests.app.conftest import Gateway, problem_of, publish, publish_several, suggest
from tests.app.predictions.suggestions import UNLABELED, drawn, ids, upload
from tests.calls import noted
from tests.stores import no_file_beyond
from tests.waiting import until


@pytest.mark.usefixtures("version")
def test_the_least_sure_come_first(gateway: Gateway) -> None:
    dataset = upload(gateway)
    found = suggest(gateway, dataset=dataset, n=3, strategy="uncertain")
    assert {
        name: found[name]
        for name in ("model", "version", "dataset", "strategy", "n_unlabeled", "margin_of", "warnings")
    } == {
        "model": "news",
        "version": 1,
        "dataset": dataset,
        "strategy": "uncertain",
        "n_unlabeled": 5,
        "margin_of": "scores",
        "warnings": [],
    }
    assert ids(found) == ["even", "near", "twin"]
    assert found["suggestions"][1] == {
        "id": "near",
        "label": "yes",
        "score": pytest.approx(0.1),
        "probability": None,
        "rival": "no",
        "voters_differ": False,
        "drawn": "chosen",
        "margin": pytest.approx(0.1),
    }


@pytest.mark.usefixtures("version")
def test_a_version_scores_a_dataset_once(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that come meanwhile, other seeds and numbers, and pages by predictions need no other scores; another
    version or dataset does.
    """
    scored = noted(monkeypatch, scoring, "score_stored", lambda *_: 1)
    dataset = upload(gateway)
    assert ids(suggest(gateway, dataset=dataset, n=2, strategy="uncertain")) == ["even", "near"]
    answer = {"annotations": [{"id": "1", "document": "even", "label": "yes"}]}
    assert gateway.client.post(f"/v1/datasets/{dataset}/annotations", json=answer).is_success
    assert sorted(ids(suggest(gateway, dataset=dataset, n=5, strategy="uncertain", seed=5))) == [
        "far",
        "near",
        "no",
        "twin",
    ]
    page = gateway.client.get(
        f"/v1/datasets/{dataset}/documents", params={"model": "news", "order": "least_certain", "limit": 2}
    )
    assert [each["id"] for each in page.json()["documents"]] == ["even", "near"]
    assert len(scored) == 1
    suggest(gateway, dataset=upload(gateway), n=2)
    assert len(scored) == 2
    publish(gateway.store)
    until(lambda: suggest(gateway, dataset=dataset, n=2)["version"] == 2)
    assert len(scored) == 3


@pytest.mark.usefixtures("version")
def test_diverse_is_the_default_and_passes_over_what_is_much_alike(gateway: Gateway) -> None:
    found = suggest(gateway, dataset=upload(gateway, {**UNLABELED, "other": [0.0, 0.0, 5.0]}), n=2)
    assert found["strategy"] == "diverse"
    assert "other" in ids(found)
    assert len({"even", "near", "twin"} & set(ids(found))) == 1


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("strategy", ["diverse", "uncertain", "random"])
def test_if_fewer_are_left_all_of_them_and_never_a_labeled_one(gateway: Gateway, strategy: str) -> None:
    dataset = upload(gateway)
    assert sorted(ids(suggest(gateway, dataset=dataset, n=1000, strategy=strategy))) == sorted(UNLABELED)
    changed = gateway.client.put(
        f"/v1/datasets/{dataset}/labels", json={"labels": {"even": "yes", "far": "yes", "known0": None}}
    ).json()["id"]
    found = suggest(gateway, dataset=changed, n=1000, strategy=strategy)
    assert sorted(ids(found)) == ["known0", "near", "no", "twin"]
    assert found["n_unlabeled"] == 4


def test_of_several_labels_the_one_with_more_in_doubt_has_more(gateway: Gateway) -> None:
    """Nine documents in doubt to two: shares of three to one."""
    publish_several(gateway.store, ["no", "yes"])
    dataset = upload(gateway, {f"{n // 9}{n}": [0.0] * (n // 9) + [0.6] for n in range(11)})
    found = suggest(gateway, dataset=dataset, n=4, strategy="uncertain", random=0)
    assert Counter(id[0] for id in ids(found)) == {"0": 3, "1": 1}


@pytest.mark.usefixtures("version")
def test_all_labeled(gateway: Gateway) -> None:
    for strategy in ("diverse", "uncertain", "random"):
        found = suggest(gateway, dataset=upload(gateway, {}), strategy=strategy)
        assert (found["suggestions"], found["n_unlabeled"], found["warnings"]) == (
            [],
            0,
            ["all documents of the dataset have labels"],
        )


@pytest.mark.usefixtures("version")
def test_random_ones_depend_on_the_seed_alone(gateway: Gateway) -> None:
    dataset = upload(gateway, {f"d{k}": [float(k), 1.0] for k in range(200)})
    first = suggest(gateway, dataset=dataset, n=20, strategy="random", seed=1)
    assert first == suggest(gateway, dataset=dataset, n=20, strategy="random", seed=1)
    second = suggest(gateway, dataset=dataset, n=20, strategy="random", seed=2)
    assert 0 <= len(set(ids(first)) & set(ids(second))) < 20
    assert len(set(ids(first))) == 20
    assert set(drawn(first).values()) == {"random"}
    for each in (*first["suggestions"], *second["suggestions"]):
        assert each["score"] == pytest.approx(1.0 - float(each["id"][1:]))


def test_probabilities_decide_where_they_are_known(gateway: Gateway) -> None:
    """Of three classes, with odds that make another document the least sure than scores do."""
    calibration = Calibration(np.ones(3), np.zeros(3), np.array([1.0, 1.0, math.exp(2.0)]))
    publish(
        gateway.store,
        model=LinearModel(
            list("abc"), 3, np.arange(3, dtype=np.uint32), np.eye(3), np.zeros(3), calibration=calibration
        ),
    )
    documents = {"scores": [5.0, 5.1, 0.0], "odds": [0.0, 3.0, 1.05], "sure": [9.0, 0.0, 0.0]}
    dataset = upload(gateway, documents)
    found = suggest(gateway, dataset=dataset, n=2, strategy="uncertain")
    assert found["margin_of"] == "probabilities"
    assert ids(found) == ["odds", "scores"]
    values = np.exp([[0.0, 3.0, 3.05], [5.0, 5.1, 2.0]])
    expected = np.sort(values / values.sum(axis=1, keepdims=True), axis=1)
    for each, probabilities in zip(found["suggestions"], expected, strict=True):
        assert each["margin"] == pytest.approx(probabilities[2] - probabilities[1], abs=1e-6)
        assert each["probability"] in (
            pytest.approx(probabilities[2], abs=1e-6),
            pytest.approx(probabilities[1], abs=1e-6),
        )
    assert {found["suggestions"][0]["label"], found["suggestions"][0]["rival"]} == {"b", "c"}
    predicted = gateway.client.post(
        "/v1/models/news/predict", json={"documents": [{"indices": [1, 2], "values": [3.0, 1.05]}]}
    ).json()
    assert found["suggestions"][0]["label"] == predicted["labels"][0]


def strewn(n: int) -> tuple[dict[str, list[float]], LinearModel]:
    """Documents of five classes and a model of them."""
    rng = np.random.default_rng(3)
    dense = np.round(rng.standard_normal((n, 8)) * (rng.random((n, 8)) < 0.6), 3) + 0.001
    model = LinearModel(
        list("abcde"), 8, np.arange(8, dtype=np.uint32), rng.standard_normal((8, 5)), rng.standard_normal(5)
    )
    return {f"d{k}": row.tolist() for k, row in enumerate(dense)}, model


@pytest.mark.parametrize("n", [1, 7, 40, 200])
def test_they_are_the_least_sure_of_each_class_in_turn(gateway: Gateway, n: int) -> None:
    documents, model = strewn(300)
    publish(gateway.store, model=model)
    dataset = upload(gateway, documents)
    pool = ids(suggest(gateway, dataset=dataset, n=3 * n, strategy="uncertain", random=0))
    scores = np.array(list(documents.values()), np.float32).astype(float) @ model.coefficients + model.intercepts
    two, classes = np.sort(scores, axis=1)[:, -2:], np.argmax(scores, axis=1)
    margins = two[:, 1] - two[:, 0]
    ranks = [np.count_nonzero((classes == classes[k]) & (margins < margins[k])) for k in range(300)]
    assert pool == [f"d{k}" for k in np.lexsort((margins, ranks))[: 3 * n]]
    found = suggest(gateway, dataset=dataset, n=n, random=0)
    assert len(set(ids(found))) == n
    predicted = {f"d{k}": int(each) for k, each in enumerate(classes)}
    left = Counter(predicted[id] for id in pool[:n])
    assert Counter(predicted[id] for id in ids(found)) == left, "as even as the least certain ones of each class"


@pytest.mark.parametrize("strategy", ["diverse", "uncertain"])
@pytest.mark.parametrize(
    ("n", "more", "n_random"),
    [
        (20, {}, 5),
        (10, {}, 2),
        (4, {}, 1),
        (3, {}, 0),
        (1, {}, 0),
        (20, {"random": 0}, 0),
        (8, {"random": 0.01}, 1),
        (8, {"random": 1}, 8),
    ],
)
def test_some_of_the_suggested_are_random(
    gateway: Gateway, strategy: str, n: int, more: dict[str, Any], n_random: int
) -> None:
    documents, model = strewn(300)
    publish(gateway.store, model=model)
    dataset = upload(gateway, documents)
    found = suggest(gateway, dataset=dataset, n=n, strategy=strategy, **more)
    words = list(drawn(found).values())
    assert (len(words), words.count("random"), words.count("chosen")) == (n, n_random, n - n_random)
    if n == 20 and n_random == 5:
        assert [place for place, word in enumerate(words) if word == "random"] == [3, 7, 11, 15, 19], "spread evenly"
    assert found == suggest(gateway, dataset=dataset, n=n, strategy=strategy, **more), (
        "the same call gives the same answer"
    )


@pytest.mark.usefixtures("version")
def test_random_ones_are_drawn_from_all(gateway: Gateway) -> None:
    """Any document is among the random ones as often as any other, also those that the model would choose."""
    dataset = upload(gateway, {f"d{k}": [float(k), 1.0] for k in range(8)})
    counts = Counter[str]()
    for seed in range(160):
        counts.update(
            id for id, word in drawn(suggest(gateway, dataset=dataset, n=4, seed=seed)).items() if word == "random"
        )
    assert counts.total() == 160
    assert min(counts[f"d{k}"] for k in range(8)) >= 8, "20 each are expected, with a standard deviation of 4"


@pytest.mark.usefixtures("version")
def test_a_full_store_refuses(gateway: Gateway) -> None:
    dataset = upload(gateway)
    with no_file_beyond(0):
        problem_of(gateway.client.post("/v1/models/news/suggest", json={"dataset": dataset}), 507)


@pytest.mark.usefixtures("version")
def test_documents_too_long_to_be_compared(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(querying, "MOST_NONZEROS", 5)
    found = suggest(gateway, dataset=upload(gateway), n=3)
    assert ids(found) == ["even", "near", "twin"]
    assert found["warnings"] == [
        "the documents are too long to be compared with each other: these are the least certain ones"
    ]
    assert suggest(gateway, dataset=upload(gateway), n=1)["warnings"] == []


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "dataset"),
        ({"n": 0}, "n"),
        ({"n": 1001}, "n"),
        ({"strategy": "uncertian"}, "strategy"),
        ({"seed": -1}, "seed"),
        ({"random": -0.1}, "random"),
        ({"random": 1.1}, "random"),
        ({"count": 3}, "count"),
        ({"documents": []}, "documents"),
    ],
)
def test_what_is_refused(gateway: Gateway, body: dict[str, Any], field: str) -> None:
    answer = gateway.client.post("/v1/models/news/suggest", json={"dataset": upload(gateway)} | body if body else {})
    (fault,) = problem_of(answer, 422)["errors"]
    assert fault["field"] == field
    if field == "strategy":
        assert fault["detail"] == "unknown value 'uncertian'; it is one of diverse, random, uncertain"


@pytest.mark.usefixtures("version")
def test_a_dataset_that_is_not_there(gateway: Gateway) -> None:
    for dataset in ("ds-nothing", "../..", ""):
        problem_of(gateway.client.post("/v1/models/news/suggest", json={"dataset": dataset}), 404)


SAID = "the model knows no more than chance would, so all of these documents are random ones"


def version(held_out: HeldOut | None, confidence: ConfidenceLevel = "none", n_classes: int = 2) -> Version:
    known: dict[str, Any] = {"classes": [*range(n_classes)], "held_out": held_out, "confidence": confidence}
    return Version.model_construct(**known)


def test_where_nothing_was_left_out() -> None:
    assert ignorance(version(None)) == SAID
    assert ignorance(version(None, "high")) is None


@pytest.mark.parametrize(("n_classes", "few"), [(2, False), (6, False), (7, True), (20, True)])
def test_few_labels_of_each_class(n_classes: int, few: bool) -> None:
    found = ignorance(version(HeldOut(labels=20, right=15, by_chance=0.1), "high", n_classes))
    assert (found is not None) is few
    assert found is None or found.startswith(
        f"20 labels left out say too little of {n_classes} classes, so all of these documents are random ones"
    )


@pytest.mark.parametrize(
    ("labels", "right", "by_chance", "rest"),
    [
        (
            20,
            9,
            0.5,
            "by chance on some 10; if it is right on 75% of those to come, it takes some 49 labels in all to "
            "know that this is not chance",
        ),
        (
            20,
            13,
            0.5,
            "by chance on some 10; if it is right on 65% of those to come, it takes some 35 labels in all to "
            "know that this is not chance",
        ),
        (
            6,
            1,
            0.2,
            "by chance on some 1; if it is right on 60% of those to come, it takes some 14 labels in all to know "
            "that this is not chance",
        ),
        (20, 16, 0.5, "by chance on some 10"),
        (12, 12, 1.0, "by chance on some 12"),
    ],
)
def test_how_many_labels_it_would_take(labels: int, right: int, by_chance: float, rest: str) -> None:
    found = ignorance(version(HeldOut(labels=labels, right=right, by_chance=by_chance)))
    assert found == f"{SAID}: of {labels} labels left out it is right on {right}, and {rest}"


@pytest.mark.parametrize("strategy", ["diverse", "uncertain", "random"])
def test_while_the_model_knows_nothing_all_are_random(gateway: Gateway, strategy: str) -> None:
    known = HeldOut(labels=20, right=9, by_chance=0.5)
    served = publish(gateway.store, report={"confidence": "none"}, held_out=known)
    dataset = upload(gateway, {f"d{k}": [float(k), 1.0] for k in range(50)})
    found = suggest(gateway, dataset=dataset, n=10, strategy=strategy, random=0)
    assert (found["strategy"], set(drawn(found).values())) == (strategy, {"random"})
    assert found["warnings"] == [ignorance(served)]
    assert ids(found) == ids(suggest(gateway, dataset=dataset, n=10, strategy="random"))


def test_while_its_classes_have_few_labels_all_are_random(gateway: Gateway) -> None:
    publish(gateway.store, report={"confidence": "high"}, held_out=HeldOut(labels=5, right=5, by_chance=0.5))
    found = suggest(gateway, dataset=upload(gateway), n=3, random=0)
    assert set(drawn(found).values()) == {"random"}
    assert found["warnings"] == [
        "5 labels left out say too little of 2 classes, so all of these documents are random ones: from 6 "
        "labels left out on the model chooses documents, too"
    ]


@pytest.mark.parametrize("confidence", ["low", "high"])
def test_while_it_knows_something_they_are_not(gateway: Gateway, confidence: str) -> None:
    publish(gateway.store, report={"confidence": confidence}, held_out=HeldOut(labels=20, right=9, by_chance=0.5))
    found = suggest(gateway, dataset=upload(gateway), n=3)
    assert (set(drawn(found).values()), found["warnings"]) == ({"chosen"}, [])
