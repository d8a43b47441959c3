"""Labels that cannot be changed: the fault is named, and nothing is kept."""

import threading
from typing import Any

import pytest

from app.datasets.service import LabelChanges
from tests.app.conftest import TWO_CLASSES, Gateway, problem_of
from tests.calls import noted


def test_labels_that_cannot_be_changed(gateway: Gateway) -> None:
    made = gateway.upload(TWO_CLASSES)
    with gateway.unchanged():
        cases: list[tuple[Any, str, str]] = [
            ({"labels": {"nobody": "yes"}}, "nobody", "id"),
            ({"labels": {"a": 5}}, "a", "label"),
            ({"labels": {"a": ""}}, "a", "label"),
            ({"labels": {"b": None, "a": 1.5}}, "a", "label"),
            ({"labels": {"a": True}}, "a", "label"),
            ({"labels": {"a": ["x"]}}, "a", "label"),
            ({"labels": ["a"]}, "", "labels"),
            ({}, "", "labels"),
            ({"labels": {}, "x": 1}, "", "x"),
        ]
        for body, document, field in cases:
            first = problem_of(gateway.client.put(f"/v1/datasets/{made['id']}/labels", json=body), 422)["errors"][0]
            assert (first["document"], first["field"]) == (document, field), body
        problem_of(gateway.client.put("/v1/datasets/ds-nothing/labels", json={"labels": {}}), 404)


def test_changes_that_are_refused_are_dropped_beside_the_event_loop(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To drop a million of them at once would hold it."""
    dropped = noted(
        monkeypatch,
        LabelChanges,
        "clear",
        lambda changes: (threading.current_thread().name.partition("_")[0], len(changes.labels)),
    )
    path = f"/v1/datasets/{gateway.upload(TWO_CLASSES)['id']}/labels"
    body = {"labels": {**{f"x{number:06}": "yes" for number in range(60_000)}, "z": 1.5}}
    problem_of(gateway.client.put(path, json=body), 422)
    [(thread, count)] = dropped
    assert thread == "parse"
    assert count > 0
