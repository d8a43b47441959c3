"""Every parameter of every call, with values that nobody should send: the answer names the fault, and is no 5xx."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.app.conftest import TWO_CLASSES, Gateway

ODD = [
    *("", "0", "-1", "1.5", "1e3", "x", "a/b/c", "a/1/2", "m/0", "m/x", "m@", "@", "m@a@b", "..", "../x", ".", "%"),
    *(
        "9" * 30,
        "9" * 5_000,
        "\u0661",
        "\u00b2",
        "\0",
        "\n",
        "\U0001f642",
        "a" * 3_000,
        "[",
        '["',
        "null",
        "true",
        "{}",
    ),
]
BODIES: dict[str, dict[str, object]] = {
    "/label-studio/setup": {"project": "a/b/c", "schema": "", "hostname": "", "access_token": ""},
    "/label-studio/predict": {"tasks": [], "project": "a/b/c", "label_config": ""},
}


def calls(contract: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in contract["paths"].items():
        for method, operation in methods.items():
            if method in ("get", "put", "post", "delete"):
                yield method.upper(), path, operation


@pytest.mark.usefixtures("version")
def test_no_value_of_a_parameter_is_a_fault_of_the_service(gateway: Gateway, contract: dict[str, Any]) -> None:
    dataset = gateway.client.post("/v1/datasets", json={"documents": TWO_CLASSES}).json()["id"]
    known = {"name": "news", "id": dataset, "number": "1", "alias": "live"}
    sent, wrong = 0, []
    for method, path, operation in calls(contract):
        for parameter in operation.get("parameters", []):
            for value in ODD:
                filled = known | ({parameter["name"]: value} if parameter["in"] == "path" else {})
                place = path
                for name, text in filled.items():
                    place = place.replace(f"{{{name}}}", quote(text, safe=""))
                query = {parameter["name"]: value.encode("utf-8", "replace")} if parameter["in"] == "query" else {}
                if operation.get("operationId", "").endswith("events"):
                    continue
                answer = gateway.client.request(method, place, params=query, json={})
                sent += 1
                if answer.status_code >= 500:
                    wrong.append((answer.status_code, method, place[:80], parameter["name"], value[:20]))
    assert sent > 2_000
    assert wrong == []


@pytest.mark.parametrize("number", ["1", "0", "x", "9" * 30, "9" * 5_000, "1/2", "", "\u00b2"])
@pytest.mark.parametrize("project", ["a/b/c", "1.2/3", "..", "9" * 5_000, ""])
def test_projects_and_versions_of_label_studio(gateway: Gateway, project: str, number: str) -> None:
    model = {} if number == "1" else {"model": f"news:{number}"}
    for path, body in BODIES.items():
        answer = gateway.client.post(path, json={**body, "project": project}, params=model)
        assert answer.status_code < 500, (path, answer.text[:200])


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/datasets", "/v1/models", "/v1/datasets/{dataset}/documents"])
@given(cursor=st.one_of(st.text(max_size=300), st.from_regex("[0-9]+|[+_-]?[0-9]+[._]0", fullmatch=True)))
@example(cursor="9" * 5000)
@example(cursor="٣")
@example(cursor="1_0")
@example(cursor="0\n")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cursors_of_strangers(gateway: Gateway, path: str, cursor: str) -> None:
    found = gateway.client.get("/v1/datasets", params={"limit": 1}).json()["datasets"]
    dataset = found[0]["id"] if found else gateway.upload(TWO_CLASSES)["id"]
    answer = gateway.client.get(path.format(dataset=dataset), params={"cursor": cursor})
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert answer.json()["errors"][0]["field"] == "cursor"
