"""Parts of the service are killed, on a folder or a bucket; accepted jobs end as they should."""

import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.service import Service, started
from tests.stores import s3_options
from tests.waiting import HANG, SLOW, until


def is_published_once(service: Service, job: str, model: str = "m") -> None:
    versions = service.get(f"/v1/models/{model}")["versions"]
    assert [(version["job"], version["version"]) for version in versions] == [(job, 1)]


def test_a_killed_valkey_is_started_again_on_its_file(service: Service, large_body: bytes) -> None:
    job = started(service, large_body, "valkey")
    service.kill("valkey-server")
    assert service.wait_for(job)["state"] == "succeeded"
    is_published_once(service, job, "valkey")
    until(lambda: service.client.get("/v1/health/ready").status_code == 200, SLOW)
    after = service.post(
        "/v1/jobs", {"dataset": service.get(f"/v1/jobs/{job}")["dataset"], "model": "valkey", "algorithm": "svm"}
    )
    assert service.wait_for(after["id"])["model"] == {"name": "valkey", "version": 2}


def test_a_killed_gateway_comes_back_at_the_same_address(service: Service, large_body: bytes) -> None:
    job = started(service, large_body, "gateway")
    (gateway,) = service.named("api")
    gateway.kill()
    until(lambda: [process.pid for process in service.named("api")] not in ([], [gateway.pid]), SLOW)
    assert service.get("/v1/health/live") == {"status": "live"}  # the connection waited in the listening socket
    assert service.wait_for(job)["state"] == "succeeded"
    is_published_once(service, job, "gateway")


def test_all_is_as_before_after_a_restart_and_a_job_that_was_running_goes_on(tmp_path: Path, large_body: bytes) -> None:
    documents = [{"indices": [place % 2], "label": label} for place, label in enumerate(["a", "b", None, None])]
    with Service(tmp_path / "data", tmp_path / "log", drain_seconds="0.5") as service:
        first = service.post("/v1/jobs", {"documents": documents, "model": "first", "algorithm": "svm"})["id"]
        service.wait_for(first)
        given = service.labels(first)
        before = {path: service.get(path) for path in ("/v1/models/first", f"/v1/jobs/{first}")}
        job = started(service, large_body)
        datasets = service.get("/v1/datasets")
        assert service.stop() == 0
        assert service.left() == []
        with pytest.raises(httpx.HTTPError):
            service.get("/v1/health/live")
    with Service(tmp_path / "data", tmp_path / "log-2") as service:
        assert service.wait_for(job)["state"] == "succeeded"
        assert (service.get("/v1/datasets"), service.labels(first)) == (datasets, given)
        assert {path: service.get(path) for path in before} == before
        is_published_once(service, job)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a killed worker's job waits for its lease to run out")
def test_a_worker_that_replaces_a_killed_one_does_its_job_and_those_after_it(
    tmp_path: Path, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch, large_body: bytes
) -> None:
    httpx.put(f"{s3_endpoint}/killed")
    for name, value in s3_options(s3_endpoint).items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    monkeypatch.setenv("HALFMOON_STORE_URL", "s3://killed/store")
    # whoever waits for the lease waits for longer than this test
    with Service(tmp_path / "data", tmp_path / "log", lease_seconds=str(2 * HANG)) as service:
        job = started(service, large_body)
        service.kill("worker")
        until(lambda: service.get(f"/v1/jobs/{job}")["attempt"] == 2, SLOW)
        done = service.wait_for(job)
        assert (done["state"], done["attempt"]) == ("succeeded", 2)
        assert "was killed by SIGKILL; restart in" in service.said()
        is_published_once(service, job)
        for version in (2, 3):
            after = service.post("/v1/jobs", {"dataset": done["dataset"], "model": "m", "algorithm": "svm"})
            assert service.wait_for(after["id"])["model"] == {"name": "m", "version": version}
