"""What the calls of a model have in common: the version that answers, and what is told of features it has not seen."""

from typing import Any

import pytest

from tests.app.conftest import Gateway, body_of, problem_of, publish

CALLS = ("predict", "evaluate", "explain", "suggest")


def body_for(gateway: Gateway, call: str, document: dict[str, Any]) -> dict[str, Any]:
    if call == "suggest":
        return {"dataset": gateway.upload([document])["id"]}
    return {"documents": [document | ({"label": "no"} if call == "evaluate" else {})]}


@pytest.mark.parametrize("call", CALLS)
def test_the_version_that_the_path_names_answers(gateway: Gateway, call: str) -> None:
    publish(gateway.store)
    publish(gateway.store, bias=9.0)
    gateway.client.put("/v1/models/news/aliases/live", json={"version": 1}).raise_for_status()
    body = body_for(gateway, call, {"indices": [0]})
    first, second, alias, newest = (
        body_of(gateway.client.post(f"/v1/models/{path}/{call}", json=body)) | {"evaluated_at": None}
        for path in ("news/versions/1", "news/versions/2", "news@live", "news")
    )
    assert (first["version"], second["version"]) == (1, 2)
    assert (alias, newest) == (first, second)
    assert first != second | {"version": 1}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("path", ["nobody", "news@nobody", "news/versions/7", "news/versions/x"])
def test_a_model_that_is_not_there_is_not_found(gateway: Gateway, call: str, path: str) -> None:
    publish(gateway.store)
    body = body_for(gateway, call, {"indices": [0]})
    problem_of(gateway.client.post(f"/v1/models/{path}/{call}", json=body), 404)


@pytest.mark.parametrize("call", CALLS)
def test_unseen_features_are_told(gateway: Gateway, call: str) -> None:
    publish(gateway.store)
    body = body_for(gateway, call, {"indices": [0, 5, 2**31 - 1]})
    assert body_of(gateway.client.post(f"/v1/models/news/{call}", json=body))["warnings"] == [
        "2 of 3 values are of features that the model has not seen; they count as zero"
    ]
