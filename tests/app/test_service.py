"""Behaviour of all routes: problems, health, metrics, documentation, the committed contract."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import openapi_spec_validator
import pytest
from fastapi import FastAPI

from app.cli.contract import FILE
from app.codecs.dispatch import FORMATS
from app.contract import EXAMPLES, text_of
from app.datasets.schemas import DatasetOut
from app.http.schemas import ProblemOut, Schema
from app.jobs.schemas import JobOut
from app.main import create_app
from app.models.schemas import VersionOut
from app.predictions.schemas import DocumentLabels, LabeledDocument, Prediction
from app.services.wiring import Pools, open_services
from app.settings import GatewaySettings
from core.registry import OFFERED
from storage.queue.connection import connect
from storage.queue.redis_state import RedisState
from tests.app.conftest import TWO_CLASSES, Gateway, Start, problem_of
from tests.stores import Valkey
from tests.there import there
from tests.waiting import HANG, until


def app() -> FastAPI:
    return create_app(GatewaySettings())


def test_the_committed_contract_is_the_live_one(gateway: Gateway, contract: dict[str, Any]) -> None:
    committed = FILE.read_text(encoding="utf-8")
    assert committed == text_of(app()), "run python -m app.cli.contract and look at the difference"
    assert contract == gateway.client.get("/v1/openapi.json").json()


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    paths = app().openapi()["paths"]
    return [(path, method, operation) for path, item in paths.items() for method, operation in item.items()]


def test_every_refusal_is_documented_as_a_problem() -> None:
    shared = app().openapi()["components"]["responses"]
    used = set()
    for path, method, operation in operations():
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                used.add(answer["$ref"].removeprefix("#/components/responses/"))
                form, schema = (
                    ("application/json", "InferenceError")
                    if path.startswith("/v2")
                    else ("application/problem+json", "Problem")
                )
                content = shared[answer["$ref"].removeprefix("#/components/responses/")]["content"]
                assert content == {form: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}, (path, method, status)
        if "requestBody" in operation:
            assert {"413", "415", "429", "408", "400" if path.startswith("/v2/") else "422"} <= set(
                operation["responses"]
            ), (path, method)
    uploads = [
        operation for path, _, operation in operations() if path == "/v1/datasets" and "requestBody" in operation
    ]
    assert set(uploads[0]["requestBody"]["content"]) == set(FORMATS)
    assert used == set(shared)


def test_the_contract_tells_what_a_job_may_be_asked() -> None:
    found = {operation["operationId"]: operation for _, _, operation in operations()}
    assert len(found) == len(operations())
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", name) for name in found)
    schemas = app().openapi()["components"]["schemas"]
    asked = schemas["JobBody"]["properties"]
    assert asked["algorithm"]["enum"] == list(OFFERED)
    options = [schemas[each["$ref"].removeprefix("#/components/schemas/")] for each in asked["options"]["anyOf"]]
    assert [each["description"].split("`")[1] for each in options] == list(OFFERED)
    properties = {name: each["properties"] for name, each in zip(OFFERED, options, strict=True)}
    assert "lambda" in properties["svm"]
    assert "max_switches" in properties["tsvm"]
    assert "cooling" in properties["da"]
    assert "epsilon" in properties["cuts3vm"]
    for operation in found.values():
        if "requestBody" in operation:
            assert "Content-Encoding" in [each["name"] for each in operation["parameters"]]


def test_generators_of_clients_find_a_name_for_every_object() -> None:
    document = app().openapi()
    openapi_spec_validator.validate(document)
    for path, method, operation in operations():
        content = operation.get("requestBody", {"content": {}})["content"]
        assert "$ref" in content.get("application/json", {"schema": {"$ref"}})["schema"], (path, method)
        assert {tag["name"] for tag in document["tags"]} >= set(operation["tags"])
        # not a name with spaces, as FastAPI makes it
        assert operation["summary"] != operation["operationId"].replace("_", " ").title()
    for name, schema in document["components"]["schemas"].items():
        for field, each in schema.get("properties", {}).items():
            assert "title" not in each, (name, field)
            # generators would call it NameFieldType0
            assert [
                option
                for option in each.get("anyOf", [])
                if option.get("type") == "object" or "enum" in option or "const" in option
            ] == []
            # a default that is an object makes generators leave out the whole operation
            assert not isinstance(each.get("default"), dict), (name, field)


def test_what_is_no_json_is_described_as_text() -> None:
    """Else generators of clients take lines or events for one object, and fail at the first answer."""
    for path, method, operation in operations():
        for answer in [operation.get("requestBody", {}), *operation["responses"].values()]:
            for form, media in answer.get("content", {}).items():
                if form != "multipart/form-data" and (not form.endswith("json") or form == "application/x-ndjson"):
                    assert "string" in [each["type"] for each in media["schema"].get("anyOf", [media["schema"]])], (
                        path,
                        method,
                        form,
                    )
    found = {operation["operationId"]: operation for _, _, operation in operations()}
    assert list(found["download_labels"]["responses"]["200"]["content"]) == [
        "application/x-ndjson",
        "text/csv",
        "application/vnd.apache.parquet",
    ]


def test_the_examples_of_the_contract_are_what_is_sent() -> None:
    answers: tuple[type[Schema], ...] = (
        DatasetOut,
        JobOut,
        VersionOut,
        Prediction,
        LabeledDocument,
        DocumentLabels,
        ProblemOut,
    )
    shown = {kind.__name__.removesuffix("Out"): kind for kind in answers}
    for name, kind in shown.items():
        read = kind.model_validate_json(json.dumps(EXAMPLES[name]), extra="forbid")
        assert json.loads(read.model_dump_json(exclude={"path", "texts"})) == EXAMPLES[name]  # only where asked
    assert set(EXAMPLES) == set(shown)


def test_an_answer_without_content_has_no_type(gateway: Gateway) -> None:
    answer = gateway.client.delete(f"/v1/datasets/{gateway.upload(TWO_CLASSES)['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-type" not in answer.headers


def test_a_refusal_is_no_longer_than_it_need_be(gateway: Gateway) -> None:
    long = "x" * 200_000
    dataset = gateway.upload(TWO_CLASSES)["id"]
    for fields, status in (
        ({"model": long}, 422),
        ({"algorithm": long}, 422),
        ({"options": {long: 1}}, 422),
        ({long: 1}, 422),
        ({"dataset": long}, 404),
    ):
        answer = gateway.job(**({"dataset": dataset} | fields))
        assert problem_of(answer, status)["detail"].endswith("…")
        assert len(answer.content) < 30_000


def test_unknown_paths_and_methods(gateway: Gateway) -> None:
    assert (
        problem_of(gateway.client.get("/v1/nothing"), 404)["detail"]
        == "nothing is at /v1/nothing; /docs describes every call"
    )
    problem_of(gateway.client.get("/v1/datasets/"), 404)
    answer = gateway.client.put("/v1/jobs", json={})
    problem_of(answer, 405)
    assert {method.strip() for method in answer.headers["allow"].split(",")} == {"GET", "POST"}


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("GET", "/v1/datasets?limt=3", "limt"),
        ("GET", "/v1/jobs?limit=3&stat=queued", "stat"),
        ("GET", "/v1/jobs/job-x?wait=1", "wait"),
        ("GET", "/v1/jobs?cursor=a&cursor=b", "cursor"),
        ("POST", "/v1/datasets?name=a&name=a", "name"),
        ("GET", "/v1/models?page=2", "page"),
        ("DELETE", "/v1/models/x?force=1", "force"),
        ("POST", "/v1/datasets?nam=x", "nam"),
        ("POST", "/v1/jobs?seed=1", "seed"),
        ("PUT", "/v1/datasets/ds-x/labels?title=x", "title"),
        ("PUT", "/v1/models/x/aliases/y?version=1", "version"),
        ("POST", "/v1/models/x/predict?top=1", "top"),
    ],
)
def test_unknown_query_parameters_are_refused(gateway: Gateway, method: str, path: str, field: str) -> None:
    problem = problem_of(gateway.client.request(method, path), 422)
    assert problem["type"] == "/problems/invalid-request"
    assert problem["errors"][0]["field"] == field


def test_following_jobs_has_threads_of_its_own(start: Start) -> None:
    gateway = start(event_poll_threads=1)
    id = gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"]).json()["id"]
    with gateway.client.stream("GET", f"/v1/jobs/{id}/events") as answer:
        next(answer.iter_lines())
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("follow")] == ["follow_0"]


def test_a_store_that_cannot_be_written(gateway: Gateway, monkeypatch: Any) -> None:
    from storage.store.folder import FolderStore

    gateway.client.get("/v1/health/ready").raise_for_status()
    monkeypatch.setattr(FolderStore, "writable", lambda self: False)
    until(lambda: gateway.client.get("/v1/health/ready").status_code == 503)
    assert problem_of(gateway.client.get("/v1/health/ready"), 503)["detail"] == "the store cannot be written"


def test_health(gateway: Gateway) -> None:
    assert gateway.client.get("/v1/health/live").json() == {"status": "live"}
    assert gateway.client.get("/v1/health/ready").json() == {
        "status": "ready",
        "store": True,
        "redis": True,
        "workers": 0,
        "workers_starting": 0,
    }


def test_metrics(start: Start) -> None:
    gateway = start()
    gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"])
    gateway.client.get("/v1/jobs/job-nothing")
    lines = gateway.client.get("/metrics").text.splitlines()
    assert 'halfmoon_requests_total{method="POST",route="/v1/jobs",status="202"} 1.0' in lines
    assert 'halfmoon_requests_total{method="GET",route="/v1/jobs/{id}",status="404"} 1.0' in lines
    assert 'halfmoon_request_seconds_count{method="POST",route="/v1/datasets"} 1.0' in lines
    assert {'halfmoon_jobs{state="queued"} 1.0', "halfmoon_datasets 1.0", "halfmoon_store_up 1.0"} <= set(lines)
    assert {"halfmoon_uploads 0.0", "halfmoon_body_bytes 0.0", "halfmoon_model_cache_models 0.0"} <= set(lines)
    assert {"halfmoon_queue_depth 1.0", "halfmoon_redis_up 1.0", "halfmoon_workers 0.0"} <= set(lines)


def test_metrics_of_trainings(gateway: Gateway, valkey: Valkey) -> None:
    with connect(valkey.url, HANG) as redis:
        RedisState(redis).count_outcome("tsvm", "succeeded", 7.0)
    gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"])
    lines = gateway.client.get("/metrics").text.splitlines()
    assert 'halfmoon_training_seconds_bucket{algorithm="tsvm",le="15",state="succeeded"} 1.0' in lines
    assert 'halfmoon_training_seconds_bucket{algorithm="tsvm",le="5",state="succeeded"} 0.0' in lines
    assert 'halfmoon_training_seconds_sum{algorithm="tsvm",state="succeeded"} 7.0' in lines
    names = {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")}
    assert {
        "halfmoon_queue_age_seconds",
        "halfmoon_dataset_bytes",
        "halfmoon_store_free_bytes",
        "process_open_fds",
    } <= names


def test_metrics_without_redis(start: Start, tmp_path: Path) -> None:
    lines = start(redis_url=f"unix://{tmp_path}/nowhere.sock").client.get("/metrics").text.splitlines()
    assert {"halfmoon_redis_up 0.0", "halfmoon_store_up 1.0", 'halfmoon_jobs{state="queued"} 0.0'} <= set(lines)


def test_the_documentation_needs_no_other_server(gateway: Gateway) -> None:
    page = gateway.client.get("/docs").text
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(links) == 3
    for link in links:
        assert link.startswith("/")
        assert gateway.client.get(link).status_code == 200


def test_the_contract_is_committed_beside_the_package() -> None:
    assert Path(__file__).parents[2] / "openapi" / "openapi.yaml" == FILE


def test_large_predictions_share_one_thread() -> None:
    """Two keep each other from the interpreter."""
    assert Pools.of(GatewaySettings()).predict._max_workers == 1


def test_threads_end_before_their_gateway_gives_up_the_queue(tmp_path: Path, valkey: Valkey) -> None:
    """Of requests whose clients have gone, too: else a job may come into the queue of another store."""
    with open_services(GatewaySettings(store_url=f"file://{tmp_path}", redis_url=valkey.url)) as services:
        held = services.pools.store.submit(
            lambda: threading.Event().wait(0.5) or there(services.admission._binding)._get("store")
        )
    assert held.result()
