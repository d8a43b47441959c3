"""Warnings of a model that knows too little to choose documents."""

from typing import Any

import pytest

from app.predictions.suggestion import ignorance
from storage.records import ConfidenceLevel, HeldOut, Version
from tests.app.conftest import Gateway, publish, suggest
from tests.app.predictions.test_suggestion import drawn, ids, upload

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
