"""Spans of requests, and that jobs remember theirs."""

from storage.repositories.jobs import Jobs
from tests.app.conftest import TWO_CLASSES, Start
from tests.spans import Spans, id_of, parent_of, spans, trace_of
from tests.there import there

__all__ = ["spans"]
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_requests_are_spans_and_jobs_know_theirs(spans: Spans, start: Start) -> None:
    gateway = start()
    dataset = gateway.upload(TWO_CLASSES)["id"]
    headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
    job = gateway.client.post(
        "/v1/jobs", json={"model": "news", "algorithm": "svm", "dataset": dataset}, headers=headers
    )
    assert job.status_code == 202
    assert gateway.client.get("/v1/jobs/nowhere").status_code == 404
    gateway.client.get("/v1/health/ready")
    gateway.client.get("/metrics")
    found = spans.named()
    assert found.keys() == {"POST /v1/datasets", "POST /v1/jobs", "GET /v1/jobs/{id}"}, "probes are left out"
    asked = found["POST /v1/jobs"]
    assert (trace_of(asked), parent_of(asked)) == (TRACE, CALLER)
    assert asked.attributes == {
        "http.request.method": "POST",
        "url.path": "/v1/jobs",
        "url.scheme": "http",
        "http.route": "/v1/jobs",
        "http.response.status_code": 202,
    }
    told = there(Jobs(gateway.store).get(job.json()["id"]).request.traceparent)
    assert told.startswith(f"00-{TRACE}-{id_of(asked)}-")
    assert found["POST /v1/datasets"].parent is None
