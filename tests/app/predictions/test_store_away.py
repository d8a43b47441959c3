"""Predictions, and liveness, while the store hangs."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from app.services import version_cache
from storage.repositories.models import Models
from storage.store.folder import FolderStore
from tests.app.conftest import EVENT_LOOP, Gateway, Start, problem_of, publish
from tests.calls import meanwhile
from tests.waiting import SOON, until

DOCUMENTS = {"documents": [{"indices": [0]}]}
INFER = {
    "inputs": [
        {"name": name, "datatype": "INT64", "shape": [len(data)], "data": data}
        for name, data in (("indptr", [0, 1]), ("indices", [0]))
    ]
}
INFER["inputs"].append({"name": "data", "datatype": "FP32", "shape": [1], "data": [1.0]})


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Clear it, and the store hangs; at the end it goes on."""
    answers = threading.Event()
    answers.set()
    for name in ("create", "replace", "read", "exists", "children", "local"):
        original = getattr(FolderStore, name)

        def call(store: FolderStore, *arguments: Any, original: Any = original) -> Any:
            answers.wait(SOON)
            return original(store, *arguments)

        monkeypatch.setattr(FolderStore, name, call)
    yield answers
    answers.set()


def first_answer(client: httpx.Client, path: str, applies: Callable[[httpx.Response], bool]) -> httpx.Response:
    """The first prediction to which this applies: for a moment the store's last answer stands."""
    return until(
        lambda: answer if applies(answer := client.post(f"/v1/models/{path}/predict", json=DOCUMENTS)) else None
    )


@pytest.mark.usefixtures("version")
def test_what_is_loaded_answers_while_the_store_hangs(gateway: Gateway, hang: threading.Event) -> None:
    Models(gateway.store).set_alias("news", "live", 1)
    client, paths = gateway.client, ("news", "news@live", "news/versions/1")
    before = [client.post(f"/v1/models/{path}/predict", json=DOCUMENTS) for path in paths]
    assert [(answer.json()["warnings"], "age" in answer.headers) for answer in before] == [([], False)] * 3
    hang.clear()
    for path in paths[:2]:
        answer = first_answer(client, path, lambda answer: "age" in answer.headers)
        assert answer.json()["labels"] == ["no"]
        assert answer.json()["warnings"][0].startswith(
            "the store does not answer: version 1 is the one that was last known"
        )
        assert answer.headers["age"].isdecimal()
    assert client.post("/v1/models/news/versions/1/predict", json=DOCUMENTS).json() == before[2].json()
    assert client.post("/v2/models/news/infer", json=INFER).headers["age"].isdecimal()
    assert client.post("/v1/models/news/explain", json={}).json()["warnings"]
    assert client.get("/v1/health/live").status_code == 200


def test_the_bound_on_what_was_last_known_is_a_setting(start: Start, hang: threading.Event) -> None:
    gateway = start(max_version_age_seconds=1e-6)
    publish(gateway.store)
    assert gateway.client.post("/v1/models/news/predict", json=DOCUMENTS).status_code == 200
    hang.clear()
    problem = problem_of(first_answer(gateway.client, "news", lambda answer: answer.is_error), 503)
    assert "has not answered" in problem["detail"]


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("known", [False, True])
def test_a_first_prediction_fails_soon_while_the_store_hangs(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, hang: threading.Event, known: bool
) -> None:
    monkeypatch.setattr(version_cache, "ANSWER_SECONDS", 0.1)
    if known:  # which version it is, but its files do not come
        meanwhile(monkeypatch, Models, "load", hang.clear)
    else:
        hang.clear()
    answer = gateway.client.post("/v1/models/news/predict", json=DOCUMENTS)
    assert "'news' names is not in memory yet" in problem_of(answer, 503)["detail"]
    assert answer.headers["retry-after"]
    hang.set()
    assert first_answer(gateway.client, "news", lambda answer: answer.is_success).json()["labels"] == ["no"]


@pytest.mark.usefixtures("version")
def test_large_bodies_are_predicted_while_others_wait_for_the_store(gateway: Gateway, hang: threading.Event) -> None:
    many = {"documents": [{"indices": [0], "values": [1.0]}] * 5_000}
    assert gateway.client.post("/v1/models/news/predict", json=many).status_code == 200
    hang.clear()
    waiting = [
        threading.Thread(target=gateway.client.post, args=("/v1/datasets",), kwargs={"json": many}) for _ in range(8)
    ]
    for thread in waiting:
        thread.start()
    answer = gateway.client.post("/v1/models/news/predict", json=many)
    assert (answer.status_code, len(answer.json()["labels"])) == (200, 5_000)
    hang.set()
    for thread in waiting:
        thread.join(SOON)


@pytest.mark.usefixtures("version")
def test_no_call_of_the_store_stands_on_the_event_loop(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    for name in ("create", "replace", "read", "exists", "children", "delete", "upload", "local", "staging"):
        original = getattr(FolderStore, name)

        def call(store: FolderStore, *arguments: Any, original: Any = original) -> Any:
            threads.add(threading.get_ident())
            return original(store, *arguments)

        monkeypatch.setattr(FolderStore, name, call)
    client = gateway.client
    dataset = gateway.upload(
        [{"id": "a", "indices": [0], "label": "no"}, {"id": "b", "indices": [1], "label": "yes"}, {"indices": [1]}]
    )["id"]
    job = gateway.job(dataset=dataset).json()["id"]
    body = {"documents": [{"indices": [0], "label": "no"}]}
    calls: list[tuple[str, str, Any]] = [
        *(
            ("GET", path, None)
            for path in ("/v1/datasets", "/v1/jobs", "/v1/models", "/metrics", "/v1/health/ready", "/v2/models/news")
        ),
        *(
            ("GET", f"/v1/{path}", None)
            for path in (f"datasets/{dataset}", f"datasets/{dataset}/documents", f"jobs/{job}", f"jobs/{job}/trace")
        ),
        *(("POST", f"/v1/models/news/{call}", body) for call in ("predict", "explain", "evaluate")),
        *(("POST", f"/v1/models/news/{call}", {"dataset": dataset}) for call in ("suggest", "evaluate")),
        ("PUT", f"/v1/datasets/{dataset}/labels", {"labels": {"a": "yes"}}),
        ("PUT", "/v1/models/news/aliases/live", {"version": 1}),
        ("POST", f"/v1/jobs/{job}/cancel", None),
        ("GET", f"/v1/jobs/{job}/events", None),
        *(("DELETE", f"/v1/{path}", None) for path in (f"jobs/{job}", f"datasets/{dataset}", "models/news")),
    ]
    assert [
        call for call in calls if client.request(call[0], call[1], json=call[2]).status_code >= 400 and call[0] != "GET"
    ] == []
    assert threads
    loops = {thread.ident for thread in threading.enumerate() if thread.name == EVENT_LOOP}
    assert loops
    assert not threads & loops
