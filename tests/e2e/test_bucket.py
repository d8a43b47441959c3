"""The service on a bucket, with parts that are killed."""

import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.service import Service, large
from tests.e2e.test_faults import is_published_once, started
from tests.stores import s3_options
from tests.waiting import HANG, SLOW, until


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a killed worker's job waits for its lease to run out")
def test_a_worker_that_replaces_a_killed_one_does_its_job_and_those_after_it(
    tmp_path: Path, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpx.put(f"{s3_endpoint}/killed")
    for name, value in s3_options(s3_endpoint).items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    monkeypatch.setenv("HALFMOON_STORE_URL", "s3://killed/store")
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
