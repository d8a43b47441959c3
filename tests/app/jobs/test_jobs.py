"""Jobs over HTTP: submission, progress, cancelling, traces and labels."""

import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.connection import AbstractConnection

from core.options.linear import TsvmOptions
from core.registry import OFFERED, Algorithm
from storage.queue.connection import connect
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.records import JobDraft, JobState, Outcome, Progress, Version
from storage.repositories.job_attempts import Attempt
from storage.repositories.jobs import Jobs
from storage.store import json_records
from storage.store.folder import FolderStore
from tests.app.conftest import TWO_CLASSES, Gateway, Start, problem_of, publish
from tests.calls import meanwhile, noted
from tests.stores import Valkey
from tests.waiting import HANG, until

NO_WORKER = "waiting for a worker: none is running"


def test_a_job_is_stored_and_queued(gateway: Gateway, dataset: str, queue: Queue) -> None:
    options = {"lambda": 0.01, "lambda_u": 2, "positive_fraction": 0.25}
    answer = gateway.job(dataset=dataset, algorithm="tsvm", options=options, seed=7)
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert (job["state"], job["algorithm"], job["dataset"], job["seed"]) == ("queued", "tsvm", dataset, 7)
    assert job["options"] == TsvmOptions.parse(options).model_dump(by_alias=True), (
        "defaults are recorded, so that a job outlasts a change of them"
    )
    assert job["options"].items() > options.items()
    assert (job["model"], job["model_name"], job["error"], job["finished_at"]) == (None, "news", None, None)
    assert job["progress"] == {"fraction": 0.0, "phase": NO_WORKER, "iteration": 0, "objective": None}
    assert job["id"] in queue.waiting()
    assert gateway.client.get(f"/v1/jobs/{job['id']}").json() == job


def test_documents_in_the_job(gateway: Gateway, queue: Queue) -> None:
    job = gateway.job(documents=TWO_CLASSES).json()
    assert gateway.client.get(f"/v1/datasets/{job['dataset']}").json()["n_documents"] == 3
    assert job["id"] in queue.waiting()


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("algorithm", ["svm", "tsvm", "da", "cuts3vm", "ramp_svm", "cccp_tsvm"])
def test_a_start_that_is_of_use_is_accepted(gateway: Gateway, dataset: str, algorithm: str) -> None:
    answer = gateway.job(dataset=dataset, algorithm=algorithm, start_from="news")
    assert answer.status_code == 202
    assert answer.json()["start_from"] == {"name": "news", "version": 1}


def test_a_job_says_when_its_version_takes_over(gateway: Gateway, dataset: str) -> None:
    for given, said in (({}, "if_better"), ({"publish": "if_better"}, "if_better"), ({"publish": "always"}, "always")):
        job = gateway.job(dataset=dataset, **given).json()
        assert (job["publish"], job["comparison"]) == (said, None)
        assert gateway.client.get(f"/v1/jobs/{job['id']}").json() == job
    fault = problem_of(gateway.job(dataset=dataset, publish="never"), 422)["errors"][0]
    assert (fault["field"], fault["detail"]) == ("publish", "unknown value 'never'; it is one of always, if_better")


def test_jobs_that_take_over_otherwise_are_others(gateway: Gateway, dataset: str) -> None:
    def post(**fields: Any) -> httpx.Response:
        body = {"dataset": dataset, "model": "news", **fields}
        return gateway.client.post("/v1/jobs", json=body, headers={"idempotency-key": "k"})

    first = post().json()["id"]
    assert post(publish="if_better").json()["id"] == first
    problem_of(post(publish="always"), 422)


def test_without_an_algorithm_it_is_chosen(gateway: Gateway, dataset: str) -> None:
    answer = gateway.client.post("/v1/jobs", json={"dataset": dataset, "model": "news"})
    assert answer.status_code == 202
    assert answer.json()["algorithm"] == "auto"
    assert answer.json()["options"]["positive_fraction"] == "estimate"
    assert answer.json()["report"] is None


def test_idempotency(gateway: Gateway, dataset: str, queue: Queue) -> None:
    headers = {"idempotency-key": "k1"}
    body = {"dataset": dataset, "model": "news", "algorithm": "svm", "options": {"lambda": 0.5, "tolerance": 0.1}}
    first = gateway.client.post("/v1/jobs", json=body, headers=headers).json()
    reordered = json.dumps(dict(reversed(body.items())) | {"options": {"tolerance": 0.1, "lambda": 0.5}}, indent=2)
    again = gateway.client.post("/v1/jobs", content=reordered, headers=headers | {"content-type": "application/json"})
    assert again.status_code == 202
    assert again.json()["id"] == first["id"]
    assert queue.depth() == 1
    problem = problem_of(gateway.client.post("/v1/jobs", json=body | {"seed": 1}, headers=headers), 422)
    assert problem["type"] == "/problems/idempotency-conflict"
    assert len(gateway.client.get("/v1/jobs").json()["jobs"]) == 1


def test_a_replay_gives_the_same_job_when_its_dataset_is_gone_and_redis_too(start: Start, tmp_path: Path) -> None:
    gateway = start()
    dataset = gateway.upload(TWO_CLASSES)["id"]
    body, headers = {"dataset": dataset, "model": "news", "algorithm": "svm"}, {"idempotency-key": "k"}
    first = gateway.client.post("/v1/jobs", json=body, headers=headers).json()
    gateway.client.post(f"/v1/jobs/{first['id']}/cancel")
    assert gateway.client.delete(f"/v1/datasets/{dataset}").status_code == 204
    for client in (gateway.client, start(redis_url=f"unix://{tmp_path}/nowhere.sock").client):
        again = client.post("/v1/jobs", json=body, headers=headers)
        assert again.status_code == 202, again.text
        assert again.json()["id"] == first["id"]
    assert gateway.client.get("/v1/datasets").json()["datasets"] == []


def test_the_key_of_a_deleted_job_makes_no_other(gateway: Gateway, dataset: str) -> None:
    body, headers = {"dataset": dataset, "model": "news", "algorithm": "svm"}, {"idempotency-key": "k"}
    id = gateway.client.post("/v1/jobs", json=body, headers=headers).json()["id"]
    gateway.client.post(f"/v1/jobs/{id}/cancel")
    assert gateway.client.delete(f"/v1/jobs/{id}").status_code == 204
    problem = problem_of(gateway.client.post("/v1/jobs", json=body, headers=headers), 409)
    assert problem["detail"] == f"job {id!r} has this idempotency key and was deleted; a new job needs a new key"
    problem_of(gateway.client.post("/v1/jobs", json=body | {"seed": 1}, headers=headers), 422)
    assert gateway.client.get("/v1/jobs").json()["jobs"] == []
    assert gateway.client.post("/v1/jobs", json=body, headers={"idempotency-key": "k2"}).status_code == 202


@pytest.mark.parametrize("algorithm", OFFERED.values(), ids=list(OFFERED))
def test_options_as_they_are_stored_are_taken_again(algorithm: Algorithm) -> None:
    options = algorithm.options.parse({"lambda": 0.25} if "lambda_" in algorithm.options.model_fields else {})
    stored = json.loads(json.dumps(options.model_dump(mode="json", by_alias=True)))
    assert algorithm.options.parse(stored) == options


def test_idempotency_of_documents_keeps_one_dataset(gateway: Gateway) -> None:
    body = {"documents": TWO_CLASSES, "model": "news", "algorithm": "svm"}
    jobs = [gateway.client.post("/v1/jobs", json=body, headers={"idempotency-key": "k"}).json() for _ in range(2)]
    assert jobs[0] == jobs[1]
    assert len(gateway.client.get("/v1/datasets").json()["datasets"]) == 1


def test_listing_by_state_and_model(gateway: Gateway, dataset: str) -> None:
    ids = [gateway.job(dataset=dataset, model=model).json()["id"] for model in ("a", "b", "a")]
    gateway.client.post(f"/v1/jobs/{ids[0]}/cancel")

    def listed(**query: Any) -> list[str]:
        return [job["id"] for job in gateway.client.get("/v1/jobs", params=query).json()["jobs"]]

    assert listed() == ids[::-1]
    assert listed(model="a") == [ids[2], ids[0]]
    assert listed(state="queued") == [ids[2], ids[1]]
    assert listed(state="cancelled", model="a") == [ids[0]]
    page = gateway.client.get("/v1/jobs", params={"limit": 2}).json()
    assert listed(limit=2, cursor=page["next_cursor"]) == [ids[0]]
    problem_of(gateway.client.get("/v1/jobs", params={"state": "asleep"}), 422)
    problem_of(gateway.client.get("/v1/jobs", params={"limit": 0}), 422)


def test_a_repeated_cancel_changes_nothing(gateway: Gateway, dataset: str) -> None:
    id = gateway.job(dataset=dataset).json()["id"]
    cancelled = gateway.client.post(f"/v1/jobs/{id}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    with gateway.unchanged():
        again = gateway.client.post(f"/v1/jobs/{id}/cancel")
        assert (again.status_code, again.json()) == (202, cancelled.json())


def test_a_clock_that_was_set_back_ends_no_job_before_it_begins(gateway: Gateway, dataset: str) -> None:
    id = gateway.job(dataset=dataset).json()["id"]
    requested = Jobs(gateway.store).get(id).request.created_at
    started, finished = requested - timedelta(hours=1), requested - timedelta(hours=2)
    json_records.create(gateway.store, f"jobs/{id}/attempts/1.json", Attempt(number=1, worker="w", started_at=started))
    Jobs(gateway.store).record_outcome(id, Outcome(state=JobState.CANCELLED, attempt=1, finished_at=finished))
    job = gateway.client.get(f"/v1/jobs/{id}").json()
    assert job["created_at"] == job["started_at"] == job["finished_at"]


def test_a_running_job_is_asked_to_stop(gateway: Gateway, dataset: str, redis_state: RedisState) -> None:
    id = gateway.job(dataset=dataset).json()["id"]
    Jobs(gateway.store).claim_attempt(id, "worker")
    redis_state.leases.renew(id, 1, "w", HANG)
    redis_state.publish_progress(id, Progress(fraction=0.5, phase="mfn", iteration=3, objective=0.25))
    assert gateway.client.get(f"/v1/jobs/{id}").json()["progress"] == {
        "fraction": 0.5,
        "phase": "mfn",
        "iteration": 3,
        "objective": 0.25,
    }
    assert "running" in problem_of(gateway.client.delete(f"/v1/jobs/{id}"), 409)["detail"]
    assert gateway.client.post(f"/v1/jobs/{id}/cancel").json()["state"] == "cancelling"
    assert redis_state.cancel_requested(id)
    again = gateway.client.post(f"/v1/jobs/{id}/cancel")
    assert (again.status_code, again.json()["state"]) == (202, "cancelling")


def test_what_a_success_leaves(gateway: Gateway, version: Version) -> None:
    job = gateway.client.get(f"/v1/jobs/{version.job}").json()
    assert (job["state"], job["model"], job["status"], job["warnings"]) == (
        "succeeded",
        {"name": "news", "version": 1},
        "converged",
        ["hm"],
    )
    assert job["progress"]["fraction"] == 1.0
    labels = gateway.client.get(f"/v1/jobs/{version.job}/labels")
    assert labels.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in labels.text.splitlines()] == [
        {"id": "c", "label": "yes", "score": 1.0, "probability": None}
    ]
    table = gateway.client.get(f"/v1/jobs/{version.job}/labels", headers={"accept": "text/csv"})
    assert table.headers["content-type"].partition(";")[0] == "text/csv"
    assert table.text == "id,label,score,probability\nc,yes,1.0,\n"
    trace = gateway.client.get(f"/v1/jobs/{version.job}/trace").json()
    assert [point["stage_objective"] for point in trace["points"]] == [0.5]


def test_labels_and_trace_before_the_end(gateway: Gateway, dataset: str, redis_state: RedisState) -> None:
    id = gateway.job(dataset=dataset).json()["id"]
    assert gateway.client.get(f"/v1/jobs/{id}/trace").json() == {"job": id, "points": []}
    problem_of(gateway.client.get(f"/v1/jobs/{id}/labels"), 409)
    point = {"phase": "mfn", "iteration": 1, "stage_objective": 0.5, "objective": None, "fraction": 0.1, "seconds": 0.1}
    redis_state.publish_progress(id, Progress(), [point])
    assert gateway.client.get(f"/v1/jobs/{id}/trace").json()["points"] == [point]


def test_a_finished_job_is_deleted_and_its_model_stays(gateway: Gateway, dataset: str, version: Version) -> None:
    running = gateway.job(dataset=dataset).json()["id"]
    problem = problem_of(gateway.client.delete(f"/v1/jobs/{running}"), 409)
    assert "queued" in problem["detail"]
    assert gateway.client.delete(f"/v1/jobs/{version.job}").status_code == 204
    for method, path in (("GET", ""), ("GET", "/labels"), ("GET", "/trace"), ("POST", "/cancel"), ("DELETE", "")):
        problem_of(gateway.client.request(method, f"/v1/jobs/{version.job}{path}"), 404)
    assert [job["id"] for job in gateway.client.get("/v1/jobs").json()["jobs"]] == [running]
    assert gateway.client.post("/v1/models/news/predict", json={"documents": [{"indices": [1]}]}).json()["labels"] == [
        "yes"
    ]


@pytest.mark.parametrize("kind", ["labels", "trace"])
def test_a_file_that_goes_while_it_is_asked_for(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, kind: str, version: Version
) -> None:
    meanwhile(monkeypatch, FolderStore, "local", lambda: Jobs(gateway.store).delete(version.job))
    problem_of(gateway.client.get(f"/v1/jobs/{version.job}/{kind}"), 404)


@pytest.mark.parametrize("path", ["", "/cancel", "/events", "/trace", "/labels"])
@pytest.mark.parametrize("id", ["job-nothing", "job-" + "0" * 24])
def test_unknown_jobs(gateway: Gateway, path: str, id: str) -> None:
    method = "POST" if path == "/cancel" else "GET"
    problem_of(gateway.client.request(method, f"/v1/jobs/{id}{path}"), 404)


def events(answer: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_events_follow_a_job_to_its_end(start: Start, redis_state: RedisState) -> None:
    gateway = start(event_poll_seconds=0.02)
    id = gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"]).json()["id"]
    jobs = Jobs(gateway.store)
    with gateway.client.stream("GET", f"/v1/jobs/{id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        stream = events(answer)
        assert next(stream) == ("progress", {"fraction": 0.0, "phase": NO_WORKER, "iteration": 0, "objective": None})
        name, job = next(stream)
        assert (name, job["state"]) == ("state", "queued")
        redis_state.leases.renew(id, 1, "w", HANG)
        jobs.claim_attempt(id, "worker")
        assert next(stream) == ("progress", {"fraction": 0.0, "phase": "starting", "iteration": 0, "objective": None})
        name, job = next(stream)
        assert (name, job["state"], job["attempt"]) == ("state", "running", 1)
        redis_state.publish_progress(id, Progress(fraction=0.4, phase="mfn", iteration=2, objective=0.3))
        assert next(stream) == ("progress", {"fraction": 0.4, "phase": "mfn", "iteration": 2, "objective": 0.3})
        jobs.record_outcome(id, Outcome(state=JobState.CANCELLED, attempt=1, finished_at=datetime.now(UTC)))
        assert [job["state"] for name, job in stream if name == "state"] == ["cancelled"]


def test_events_of_a_finished_job_end_at_once(gateway: Gateway, version: Version) -> None:
    with gateway.client.stream("GET", f"/v1/jobs/{version.job}/events") as answer:
        assert [name for name, _ in events(answer)] == ["progress", "state"]


def test_without_redis(start: Start, tmp_path: Any) -> None:
    gateway = start(redis_url=f"unix://{tmp_path}/nowhere.sock")
    made = gateway.upload(TWO_CLASSES)
    version = publish(gateway.store, dataset=made["id"])
    for source in ({"dataset": made["id"]}, {"documents": TWO_CLASSES}):
        with gateway.unchanged():
            answer = gateway.job(**source)
        assert problem_of(answer, 503)["type"] == "/problems/unavailable"
        assert answer.headers["retry-after"] == "1"
    assert gateway.client.get(f"/v1/jobs/{version.job}").json()["state"] == "succeeded"
    assert gateway.client.get("/v1/jobs").status_code == 200
    running, _ = Jobs(gateway.store).create(JobDraft(dataset=made["id"], model="news", algorithm="svm"))
    assert gateway.client.get(f"/v1/jobs/{running.request.id}/trace").json() == {
        "job": running.request.id,
        "points": [],
    }
    assert gateway.client.post("/v1/models/news/predict", json={"documents": [{"indices": [1]}]}).json()["labels"] == [
        "yes"
    ]
    assert problem_of(gateway.client.get("/v1/health/ready"), 503)["detail"] == "Redis cannot be written"
    assert gateway.client.get("/v1/health/live").status_code == 200
    assert "halfmoon_redis_up 0.0" in gateway.client.get("/metrics").text


def test_a_silent_redis_is_waited_for_once_however_many_jobs_are_listed(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = noted(monkeypatch, AbstractConnection, "connect", lambda _: threading.current_thread().name)

    def waited() -> int:
        """How often requests have waited for Redis, which ends its connection each time."""
        return sum(name not in ("reconcile", "cleanup") for name in waits)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        gateway = start(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", redis_timeout_seconds=0.1)
        jobs, dataset = Jobs(gateway.store), gateway.upload(TWO_CLASSES)["id"]
        for _ in range(8):
            job, _ = jobs.create(JobDraft(dataset=dataset, model="news", algorithm="svm"))
            assert jobs.claim_attempt(job.request.id, "w") is not None
        before = waited()
        listed = gateway.client.get("/v1/jobs").json()["jobs"]
        assert [job["state"] for job in listed] == ["running"] * 8
        assert waited() - before == 1
        problem_of(gateway.job(dataset=dataset), 503)
        assert waited() - before == 2


def test_a_lost_queue_is_filled_again(start: Start, valkey: Valkey, queue: Queue) -> None:
    gateway = start(reconcile_interval_seconds=0.05, lease_seconds=0.2)
    id = gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"]).json()["id"]
    with connect(valkey.url, HANG) as redis:
        redis.flushall()
    assert id not in queue.waiting()
    until(lambda: id in queue.waiting())
