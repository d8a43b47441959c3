"""Keys of colleagues: made, used to label, revoked."""

import pytest

from storage.repositories.api_keys import ApiKeys, Scope
from tests.app.conftest import TWO_CLASSES, Gateway, Start, bearer, problem_of
from tests.waiting import until


@pytest.fixture
def locked(start: Start) -> Gateway:
    return start(access="keys", key_refresh_seconds=0.05)


@pytest.fixture
def admin(locked: Gateway) -> dict[str, str]:
    headers = bearer(ApiKeys(locked.store).create("test", {Scope.ADMIN})[1])
    until(lambda: locked.client.get("/v1/models", headers=headers).status_code == 200)
    return headers


def test_a_colleague_may_label_and_removes_nothing(locked: Gateway, admin: dict[str, str]) -> None:
    dataset = locked.client.post("/v1/datasets", json={"documents": TWO_CLASSES}, headers=admin).json()["id"]
    made = locked.client.post("/v1/keys", json={"name": "ann", "days": 2}, headers=admin)
    assert made.status_code == 201, made.text
    assert (made.json()["name"], made.json()["scopes"]) == ("ann", ["label"])
    ann, path = bearer(made.json()["key"]), f"/v1/datasets/{dataset}"
    until(lambda: locked.client.get("/v1/datasets", headers=ann).status_code == 200)
    answer = {"annotations": [{"id": "1", "document": "c", "label": "yes", "by": "ann"}]}
    assert locked.client.post(f"{path}/annotations", json=answer, headers=ann).status_code == 200
    job = {"model": "m", "algorithm": "svm", "dataset": dataset}
    assert locked.client.post("/v1/jobs", json=job, headers=ann).status_code == 202
    for method, refused in (("DELETE", path), ("PATCH", path), ("POST", "/v1/keys"), ("DELETE", "/v1/models/m")):
        body = None if method == "DELETE" else {"name": "x"}
        problem_of(locked.client.request(method, refused, json=body, headers=ann), 403)


def test_a_revoked_colleague_is_out(locked: Gateway, admin: dict[str, str]) -> None:
    made = locked.client.post("/v1/keys", json={"name": "ann"}, headers=admin).json()
    ann = bearer(made["key"])
    until(lambda: locked.client.get("/v1/datasets", headers=ann).status_code == 200)
    [listed] = locked.client.get("/v1/keys", headers=admin).json()["keys"]
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert locked.client.delete(f"/v1/keys/{made['id']}", headers=admin).status_code == 204
    until(lambda: locked.client.get("/v1/datasets", headers=ann).status_code == 401)
    assert locked.client.get("/v1/keys", headers=admin).json()["keys"] == []


def test_keys_of_other_scopes_are_not_revoked_over_http(locked: Gateway, admin: dict[str, str]) -> None:
    other, _ = ApiKeys(locked.store).create("train", {Scope.TRAIN})
    problem_of(locked.client.delete(f"/v1/keys/{other.id}", headers=admin), 404)
    assert [each.revoked for each in ApiKeys(locked.store).every()] == [False, False]


def test_where_no_key_is_required_there_is_none_to_make(gateway: Gateway) -> None:
    answer = problem_of(gateway.client.post("/v1/keys", json={"name": "ann"}), 409)
    assert "the address of the page" in answer["detail"]
    assert gateway.client.get("/v1/keys").json() == {"keys": [], "required": False}
    assert [*ApiKeys(gateway.store).every()] == []
