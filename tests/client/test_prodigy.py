"""The recipe of Prodigy, which is not free software: its decorator is imitated, and the recipe called as Prodigy
does."""

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from halfmoon import Halfmoon
from halfmoon.errors import InvalidData

from core.validation.label_calibration import LabelCalibration
from tests.app.conftest import Gateway, publish, text_model

TEXTS = [f"late vote {word}" for word in "abcdefghijklmnopqrstuvwxy"]
Recipe = Callable[..., dict[str, Any]]


@pytest.fixture
def recipe(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """The function that Prodigy finds under the name of the recipe."""
    recipes: dict[str, tuple[Recipe, dict[str, Any]]] = {}

    def decorated(name: str, **annotations: tuple[str, str, str | None, Any]) -> Callable[[Recipe], Recipe]:
        assert all(kind in ("positional", "option", "flag") for _, kind, _, _ in annotations.values())

        def keep(function: Recipe) -> Recipe:
            assert set(annotations) == set(function.__annotations__) - {"return"}
            recipes[name] = (function, annotations)
            return function

        return keep

    module = ModuleType("prodigy")
    module.recipe = decorated  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "prodigy", module)
    monkeypatch.delitem(sys.modules, "halfmoon.prodigy", raising=False)
    monkeypatch.setenv("HALFMOON_URL", str(gateway.client.base_url))
    import halfmoon.prodigy

    assert halfmoon.prodigy.__name__
    function, annotations = recipes["halfmoon.textcat"]
    assert annotations["label"][3]("sport, politics,") == ["sport", "politics"]
    return function


def test_labels_go_to_the_service(gateway: Gateway, recipe: Recipe) -> None:
    publish(gateway.store, "texts", model=text_model())
    dataset = gateway.upload([{"id": f"t{place}", "text": text} for place, text in enumerate(TEXTS)])["id"]
    components = recipe("news", dataset, "texts", by="ann", preselect=True)
    assert (components["dataset"], components["view_id"], components["config"]["choice_style"]) == (
        "news",
        "choice",
        "single",
    )
    tasks = list(islice(components["stream"], 3))
    assert tasks[0]["text"] in TEXTS
    assert tasks[0]["options"] == [{"id": "politics", "text": "politics"}, {"id": "sport", "text": "sport"}]
    assert tasks[0]["accept"] == ["politics"]
    answers = [
        tasks[0] | {"answer": "accept", "accept": ["sport"]},
        tasks[1] | {"answer": "accept", "accept": []},
        tasks[2] | {"answer": "ignore", "accept": ["sport"]},
    ]
    components["update"](answers)
    with Halfmoon(str(gateway.client.base_url)) as hm:
        log = list(hm.datasets.get(dataset).annotations())
    assert [(entry.action, entry.label, entry.by, entry.mode) for entry in log] == [
        ("label", "sport", "ann", "assisted"),
        ("skip", None, "ann", "assisted"),
        ("skip", None, "ann", "assisted"),
    ]
    assert [entry.document for entry in log] == [task["halfmoon_id"] for task in tasks]
    rest = [task["text"] for task in components["stream"]]
    assert sorted(rest + [task["text"] for task in tasks]) == sorted(TEXTS), (
        "each text comes once, and then the stream ends"
    )
    components["on_exit"](None)


def test_several_labels_are_chosen_and_shown(gateway: Gateway, recipe: Recipe) -> None:
    one = text_model()
    columns, halves = np.hstack([-one.coefficients, one.coefficients]), np.full(2, 0.5)
    calibration = LabelCalibration(np.full(2, 9.0), np.full(2, -1.0), halves)
    model = replace(one, coefficients=columns, intercepts=np.zeros(2), calibration=calibration)
    publish(gateway.store, "texts", model=model, classes=model.classes, label_kind="several")
    told: dict[str, Any] = {"id": "known", "text": "goal", "labels": ["sport"]}
    dataset = gateway.upload([told, {"id": "v", "text": "vote vote"}, {"id": "n", "text": "nothing"}])["id"]
    components = recipe("news", dataset, "texts", preselect=True)
    assert components["config"]["choice_style"] == "multiple"
    tasks = {task["halfmoon_id"]: task for task in islice(components["stream"], 2)}
    assert {id: task["accept"] for id, task in tasks.items()} == {"v": ["politics"], "n": []}
    chosen = {"v": ["politics", "sport"], "n": []}
    components["update"]([tasks[id] | {"answer": "accept", "accept": labels} for id, labels in chosen.items()])
    components["update"]([tasks["v"] | {"answer": "ignore", "accept": ["sport"]}])
    log = gateway.client.get(f"/v1/datasets/{dataset}/annotations").json()["annotations"]
    assert [(entry["document"], entry["action"], entry["labels"]) for entry in log] == [
        ("v", "label", ["politics", "sport"]),
        ("n", "label", []),
        ("v", "skip", None),
    ]
    components["on_exit"](None)


def test_labels_that_are_asked_for_and_documents_without_text(gateway: Gateway, recipe: Recipe) -> None:
    publish(gateway.store, classes=(1, 2))
    vectors = gateway.upload([{"id": "a", "indices": [0]}, {"id": "b", "indices": [1]}])["id"]
    components = recipe("news", vectors, "news", label=["2", "other"])
    with pytest.raises(InvalidData, match="have no text to show"):
        next(components["stream"])
    components["update"]([{"halfmoon_id": "a", "answer": "accept", "accept": ["2"]}])
    (entry,) = gateway.client.get(f"/v1/datasets/{vectors}/annotations").json()["annotations"]
    assert (entry["label"], entry["mode"]) == (2, "blind"), "labels that are numbers stay numbers"
    components["on_exit"](None)
