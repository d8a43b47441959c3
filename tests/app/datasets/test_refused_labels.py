"""Labels that cannot be changed: the fault is named, and nothing is kept."""

from typing import Any

from tests.app.conftest import TWO_CLASSES, Gateway, problem_of


def test_labels_that_cannot_be_changed(gateway: Gateway) -> None:
    made = gateway.upload(TWO_CLASSES)
    before = gateway.kept()
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
    assert gateway.kept() == before
