"""Audits, drawn and reported."""

from typing import Any

from tests.app.conftest import Gateway, body_of

COUNT = 200
"""Documents, of which the first has the label no, the second yes. By the model of ``publish`` document k is no below
the middle, else yes."""


def draw(gateway: Gateway, dataset: str, **body: Any) -> dict[str, Any]:
    answer = gateway.client.post(f"/v1/datasets/{dataset}/audits", json={"model": "news", "seed": 3, **body})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/datasets/{dataset}/audits/{found['id']}"
    return found


def report(gateway: Gateway, audit: dict[str, Any], **query: Any) -> dict[str, Any]:
    return body_of(gateway.client.get(f"/v1/datasets/{audit['dataset']}/audits/{audit['id']}", params=query))
