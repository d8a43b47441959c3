"""The service on a bucket, with parts that are killed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.service import Service, large
from tests.e2e.test_faults import is_published_once, started
from tests.waiting import HANG, SLOW, until


@pytest.fixture
def bucket() -> Iterator[dict[str, str]]:
    """Settings of an S3 server with a bucket, in this process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    httpx.put(f"http://{host}:{port}/halfmoon", trust_env=False)
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "HALFMOON_STORE_URL": "s3://halfmoon/store",
    }
    server.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a killed worker's job waits for its lease to run out")
def test_a_worker_that_replaces_a_killed_one_does_its_job_and_those_after_it(
    tmp_path: Path, bucket: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.items():
        monkeypatch.setenv(name, value)
    # whoever waits for the lease waits for longer than this test
    with Service(tmp_path / "data", tmp_path / "log", lease_seconds=str(2 * HANG)) as service:
        job = started(service, large(n_documents=8_000))
        service.kill("worker")
        until(lambda: service.get(f"/v1/jobs/{job}")["attempt"] == 2, SLOW)
        done = service.wait_for(job)
        assert (done["state"], done["attempt"]) == ("succeeded", 2)
        assert "was killed by SIGKILL; restart in" in service.said()
        is_published_once(service, job)
        for version in (2, 3):
            after = service.post("/v1/jobs", {"dataset": done["dataset"], "model": "m", "algorithm": "svm"})
            assert service.wait_for(after["id"])["model"] == {"name": "m", "version": version}
