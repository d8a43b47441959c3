"""Models, aliases and predictions over HTTP, and what all calls of a model have in common."""

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from storage.records import Comparison, HeldOut, Version
from tests.app.codecs.encodings import ENCODERS, npz
from tests.app.conftest import NDJSON, Gateway, Start, body_of, problem_of, publish
from tests.waiting import until

DOCUMENTS = [{"indices": [0], "values": [2.0]}, {"indices": [1, 2], "values": [0.5, 9.0]}]


def predict(gateway: Gateway, path: str = "news/predict", documents: Any = DOCUMENTS) -> dict[str, Any]:
    return body_of(gateway.client.post(f"/v1/models/{path}", json={"documents": documents}))


@pytest.mark.usefixtures("version")
def test_a_prediction_of_two_classes(gateway: Gateway) -> None:
    assert predict(gateway) == {
        "model": "news",
        "version": 1,
        "classes": ["no", "yes"],
        "labels": ["no", "yes"],
        "scores": [[-2.0], [0.5]],
        "probabilities": None,
        "warnings": [],
    }


def test_a_prediction_of_three_classes(gateway: Gateway) -> None:
    publish(gateway.store, classes=("a", "b", "c"))
    found = predict(gateway)
    assert found["labels"] == ["a", "c"]
    assert found["scores"] == [[2.0, 0.0, 0.0], [0.0, 0.5, 9.0]]


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("media_type", ENCODERS)
@pytest.mark.parametrize("repeats", [1, 20_000])
def test_every_format_predicts_alike(gateway: Gateway, media_type: str, repeats: int) -> None:
    body = ENCODERS[media_type](DOCUMENTS * repeats)
    for encoding, content in (("identity", body), ("gzip", gzip.compress(body, 1))):
        headers = {"content-type": media_type, "content-encoding": encoding}
        answer = gateway.client.post("/v1/models/news/predict", content=content, headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.json()["labels"] == ["no", "yes"] * repeats
        assert answer.json()["scores"] == [[-2.0], [0.5]] * repeats


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("repeats", [1, 20_000])
def test_dense_documents_are_predicted_alike(gateway: Gateway, order: Literal["C", "F"], repeats: int) -> None:
    """Of more features than the model has, too."""
    matrix = np.zeros((len(DOCUMENTS) * repeats, 5), np.float32, order)
    matrix[::2, 0] = 2
    matrix[1::2, [1, 2]] = 0.5, 9
    matrix[0, 4] = 7
    answer = gateway.client.post(
        "/v1/models/news/predict", content=npz({"X": matrix}), headers={"content-type": "application/x-npz"}
    )
    assert answer.json()["scores"] == [[-2.0], [0.5]] * repeats
    values = np.count_nonzero(matrix)
    assert answer.json()["warnings"] == [
        f"1 of {values} values are of features that the model has not seen; they count as zero"
    ]


def test_documents_out_of_order_and_empty(gateway: Gateway) -> None:
    publish(gateway.store, bias=0.25)
    assert predict(gateway, documents=[{"indices": [1, 0], "values": [3, 1]}, {"indices": []}])["scores"] == [
        [2.25],
        [0.25],
    ]


def test_a_new_version_and_a_moved_alias_count_at_once_and_soon_elsewhere(start: Start) -> None:
    gateway, other = start(), start()
    publish(gateway.store)
    assert predict(gateway)["version"] == predict(other)["version"] == 1
    made = publish(gateway.store, bias=5.0)
    assert gateway.client.get(f"/v1/jobs/{made.job}").json()["state"] == "succeeded"
    assert predict(gateway)["version"] == 2
    until(lambda: predict(other)["version"] == 2)
    assert predict(gateway, "news/versions/1/predict")["labels"] == ["no", "yes"]
    for version, labels in ((1, ["no", "yes"]), (2, ["yes", "yes"])):
        answer = gateway.client.put("/v1/models/news/aliases/live", json={"version": version})
        assert (answer.status_code, answer.json()) == (200, {"name": "news", "alias": "live", "version": version})
        assert predict(gateway, "news@live/predict")["labels"] == labels
        until(lambda: predict(other, "news@live/predict")["version"] == version)  # noqa: B023 - it is called here


def test_the_cache_stays_within_its_bytes(start: Start) -> None:
    gateway = start(model_cache_bytes=1)
    for name in ("a", "b", "c"):
        publish(gateway.store, name)
    for _ in range(2):
        for name in ("a", "b", "c"):
            assert predict(gateway, f"{name}/predict")["model"] == name
    assert 0 < gateway.measured("halfmoon_model_cache_bytes") < 300


@pytest.mark.usefixtures("version")
def test_a_version_that_does_not_take_over_is_served_by_its_number_alone(gateway: Gateway) -> None:
    worse = Comparison(takes_over=False, why="it is worse", against=1, labels=20, gained=1, lost=12, p_value=0.0017)
    known = HeldOut(labels=20, right=12, by_chance=0.5, likeliest=0.55)
    job = publish(
        gateway.store, bias=5.0, comparison=worse, held_out=known, report={"confidence": "low"}, warnings=[worse.why]
    ).job
    assert [predict(gateway, path)["labels"] for path in ("news/predict", "news/versions/2/predict")] == [
        ["no", "yes"],
        ["yes", "yes"],
    ]
    shown = gateway.client.get("/v1/models/news").json()
    assert shown["served"] == 1
    assert [version["takes_over"] for version in shown["versions"]] == [True, False]
    assert [version["comparison"] for version in shown["versions"]] == [None, worse.model_dump()]
    # Clopper and Pearson, 12 of 20
    interval = {"low": pytest.approx(0.36054, abs=5e-6), "high": pytest.approx(0.80881, abs=5e-6)}
    assert [(version["held_out"], version["confidence"]) for version in shown["versions"]] == [
        (None, None),
        (known.model_dump() | interval, "low"),
    ]
    assert gateway.client.get("/v1/models").json()["models"] == [
        {"name": "news", "newest": 2, "served": 1, "aliases": {}}
    ]
    ended = gateway.client.get(f"/v1/jobs/{job}").json()
    assert (ended["state"], ended["model"], ended["comparison"]) == (
        "succeeded",
        {"name": "news", "version": 2},
        worse.model_dump(),
    )
    assert ended["warnings"] == ["it is worse"]
    gateway.client.put("/v1/models/news/aliases/trial", json={"version": 2})
    assert predict(gateway, "news@trial/predict")["version"] == 2
    assert gateway.client.delete("/v1/models/news/versions/1").status_code == 204
    assert predict(gateway)["version"] == 2, "it is all that is left"


def test_listing_and_showing(gateway: Gateway) -> None:
    for name in ("b", "a", "a"):
        publish(gateway.store, name)
    gateway.client.put("/v1/models/a/aliases/live", json={"version": 1})
    page = gateway.client.get("/v1/models", params={"limit": 1}).json()
    assert page["models"] == [{"name": "a", "newest": 2, "served": 2, "aliases": {"live": 1}}]
    assert gateway.client.get("/v1/models", params={"cursor": page["next_cursor"]}).json() == {
        "models": [{"name": "b", "newest": 1, "served": 1, "aliases": {}}],
        "next_cursor": None,
        "warnings": [],
    }
    shown = gateway.client.get("/v1/models/a").json()
    assert [version["version"] for version in shown["versions"]] == [1, 2]
    assert shown["aliases"] == {"live": 1}
    assert gateway.client.get("/v1/models/a/versions/2").json() == shown["versions"][1]
    assert shown["versions"][0]["classes"] == ["no", "yes"]


def test_deleting(gateway: Gateway) -> None:
    for _ in range(2):
        publish(gateway.store)
    gateway.client.put("/v1/models/news/aliases/live", json={"version": 2})
    with gateway.unchanged():
        problem_of(gateway.client.delete("/v1/models/news/versions/2"), 409)
    assert predict(gateway, "news/versions/2/predict")["version"] == 2
    assert gateway.client.delete("/v1/models/news/aliases/live").status_code == 204
    problem_of(gateway.client.post("/v1/models/news@live/predict", json={"documents": DOCUMENTS}), 404)
    assert gateway.client.delete("/v1/models/news/versions/2").status_code == 204
    problem_of(gateway.client.post("/v1/models/news/versions/2/predict", json={"documents": DOCUMENTS}), 404)
    assert predict(gateway)["version"] == 1
    assert gateway.client.delete("/v1/models/news").status_code == 204
    problem_of(gateway.client.get("/v1/models/news"), 404)
    assert publish(gateway.store).number == 3


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    "path",
    [
        "nobody",
        "a%2Fb",
        "..%2F..%2Fetc",
        "news@nobody",
        "news@",
        "@live",
        "news@a@b",
        "news/versions/7",
        "news/versions/0",
        "news/versions/x",
    ],
)
def test_models_that_are_not_there(gateway: Gateway, path: str) -> None:
    problem_of(gateway.client.post(f"/v1/models/{path}/predict", json={"documents": DOCUMENTS}), 404)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("news/aliases/live", {"version": 9}, 404),
        ("nobody/aliases/live", {"version": 1}, 404),
        ("news/aliases/-live", {"version": 1}, 422),
        ("news/aliases/a%2Fb", {"version": 1}, 404),
        ("news/aliases/live", {"version": "1"}, 422),
        ("news/aliases/live", {"version": 0}, 422),
        ("news/aliases/live", {}, 422),
    ],
)
@pytest.mark.usefixtures("unchanged")
def test_aliases_that_are_refused(gateway: Gateway, path: str, body: dict[str, Any], status: int) -> None:
    problem_of(gateway.client.put(f"/v1/models/{path}", json=body), status)


LIGHT = """
import asyncio, json, sys
import httpx
from app.main import create_app
from app.settings import GatewaySettings

async def main():
    app = create_app(GatewaySettings(store_url=sys.argv[1], redis_url=sys.argv[2]))
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=httpx.ASGITransport(app),
  base_url="http://localhost") as client:
        answer = await client.post("/v1/models/news/predict", json={"documents": [{"indices": [1]}]})
        assert answer.json()["labels"] == ["yes"], answer.text
    print(json.dumps([name for name in ("numba", "sklearn", "scipy", "core.train") if name in sys.modules]))

asyncio.run(main())
"""


@pytest.mark.usefixtures("version")
def test_a_gateway_that_predicts_has_not_loaded_what_trains(gateway: Gateway, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIGHT, f"file://{gateway.root}", f"unix://{tmp_path}/nowhere.sock"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert json.loads(done.stdout) == []


@pytest.mark.usefixtures("version")
def test_npz_of_a_prediction_with_more_features_than_the_model(gateway: Gateway) -> None:
    arrays = {
        "indptr": np.array([0, 2]),
        "indices": np.array([1, 1000]),
        "data": np.array([1.5, 1.0]),
        "shape": np.array([1, 5000]),
    }
    answer = gateway.client.post(
        "/v1/models/news/predict", content=npz(arrays), headers={"content-type": "application/x-npz"}
    )
    assert math.isclose(answer.json()["scores"][0][0], 1.5)
    assert len(answer.json()["warnings"]) == 1


@pytest.mark.usefixtures("version")
def test_ids_used_twice_do_not_matter_to_a_prediction(gateway: Gateway) -> None:
    body = b'{"id": "x", "indices": [0]}\n{"id": "x", "indices": [1]}\n'
    answer = gateway.client.post("/v1/models/news/predict", content=body, headers={"content-type": NDJSON})
    assert answer.json()["labels"] == ["no", "yes"]


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    "number", ["x", "0", "-1", "1.0", "7", "+1", "9" * 30, "9" * 5000, "0" * 5000 + "1", "2147483648", "\u0661"]
)
def test_a_version_that_is_not_there_is_not_found_by_any_call(gateway: Gateway, number: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/predict")):
        answer = gateway.client.request(
            method, f"/v1/models/news/versions/{number}{path}", json={"documents": DOCUMENTS} if path else None
        )
        assert problem_of(answer, 404)["type"] == "/problems/not-found"


def test_a_version_that_a_job_starts_from_is_in_use(gateway: Gateway, version: Version) -> None:
    answer = gateway.job(dataset=version.dataset, start_from="news")
    assert answer.status_code == 202
    for path in ("/v1/models/news/versions/1", "/v1/models/news"):
        assert answer.json()["id"] in problem_of(gateway.client.delete(path), 409)["detail"]


CALLS = ("predict", "evaluate", "explain", "suggest")


def body_for(gateway: Gateway, call: str, document: dict[str, Any]) -> dict[str, Any]:
    if call == "suggest":
        return {"dataset": gateway.upload([document])["id"]}
    return {"documents": [document | ({"label": "no"} if call == "evaluate" else {})]}


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("call", CALLS)
def test_the_version_that_the_path_names_answers(gateway: Gateway, call: str) -> None:
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


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("path", ["nobody", "news@nobody", "news/versions/7", "news/versions/x"])
def test_a_model_that_is_not_there_is_not_found(gateway: Gateway, call: str, path: str) -> None:
    body = body_for(gateway, call, {"indices": [0]})
    problem_of(gateway.client.post(f"/v1/models/{path}/{call}", json=body), 404)


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("call", CALLS)
def test_unseen_features_are_told(gateway: Gateway, call: str) -> None:
    body = body_for(gateway, call, {"indices": [0, 5, 2**31 - 1]})
    assert body_of(gateway.client.post(f"/v1/models/news/{call}", json=body))["warnings"] == [
        "2 of 3 values are of features that the model has not seen; they count as zero"
    ]
