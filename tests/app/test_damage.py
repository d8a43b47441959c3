"""A gateway with damaged records: each is named, and every other call answers as before."""

import pytest

from storage.names import new_id
from tests.app.conftest import TWO_CLASSES, Gateway, Start, problem_of, publish


@pytest.fixture
def damaged(gateway: Gateway) -> dict[str, str]:
    """Calls of damaged things, with the keys of their records."""
    store, dataset = gateway.store, gateway.upload(TWO_CLASSES)["id"]
    job = gateway.job(dataset=dataset).json()["id"]
    publish(store, "torn", dataset=dataset)
    store.replace(f"jobs/{job}/request.json", b'{"id":')
    store.replace("models/torn/versions/1.json", b"")
    store.replace("models/torn/aliases/live.json", b"")
    torn = new_id("ds")
    store.create(f"datasets/{torn}/manifest.json", b"")
    for key in ("open/lost-and-found", "jobs/notes.txt", "deleting/x", "datasets/old"):
        store.create(key, b"")
    (gateway.root / "models" / "torn" / "versions" / "1.json~").write_bytes(b"")
    return {
        f"/v1/jobs/{job}": f"jobs/{job}/request.json",
        "/v1/models/torn/versions/1": "models/torn/versions/1.json",
        f"/v1/datasets/{torn}": f"datasets/{torn}/manifest.json",
    }


def test_what_is_damaged_is_named(gateway: Gateway, damaged: dict[str, str]) -> None:
    for path, key in damaged.items():
        answer = gateway.client.get(path)
        problem = problem_of(answer, 503)
        assert problem["type"] == "/problems/damaged"
        assert key in problem["detail"]
        assert "retry-after" not in answer.headers, "a retry does not help"
    assert gateway.measured("halfmoon_damaged_records") == len(damaged)


def test_lists_say_what_they_leave_out(start: Start, gateway: Gateway, damaged: dict[str, str]) -> None:
    keys = {path.split("/")[2]: key for path, key in damaged.items()}
    for name in ("jobs", "datasets"):
        page = gateway.client.get(f"/v1/{name}").json()
        assert page["warnings"] == [f"1 damaged record is left out: {keys[name]}; `halfmoon doctor` says what is wrong"]
    (warning,) = gateway.client.get("/v1/models").json()["warnings"]
    assert keys["models"] in warning
    for _ in range(3):
        publish(gateway.store, "news")
    assert gateway.client.get("/v1/models/news").json()["warnings"] == []
    for key in ("aliases/live", "versions/1"):
        gateway.store.replace(f"models/news/{key}.json", b"")
    shown = start().client.get("/v1/models/news").json()
    assert [version["version"] for version in shown["versions"]] == [2, 3]
    assert shown["warnings"][0].startswith(
        "2 damaged records are left out: models/news/aliases/live.json, models/news/versions/1.json;"
    )
