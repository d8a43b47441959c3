"""Headers, log lines and spans of all answers."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import structlog.testing

from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from tests.app.conftest import TWO_CLASSES, Gateway, Start
from tests.spans import Spans, id_of, parent_of, spans, trace_of
from tests.stores import Valkey
from tests.there import there
from tests.waiting import HANG

ORIGIN = "https://portal.example"


def test_every_answer_has_an_id_of_its_request(gateway: Gateway) -> None:
    ids = [
        gateway.client.get(path).headers["x-request-id"]
        for path in ("/v1/health/live", "/v1/nothing", "/docs", "/v1/jobs?x=1")
    ]
    assert len(set(ids)) == 4
    assert all(re.fullmatch("[0-9a-f]{16}", id) for id in ids)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("order-7.a_b", True), ("x" * 64, True), ("x" * 65, False), ("a b", False), ("a;b", False), ("", False)],
)
def test_a_good_id_of_the_client_is_kept(gateway: Gateway, sent: str, kept: bool) -> None:
    found = gateway.client.get("/v1/health/live", headers={"X-Request-ID": sent}).headers["x-request-id"]
    assert (found == sent) is kept


def test_no_answer_is_taken_for_another_type(gateway: Gateway) -> None:
    for path in ("/v1/health/live", "/v1/nothing", "/docs", "/docs/assets/swagger-ui.css", "/metrics"):
        assert gateway.client.get(path).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/v1/models", "/v2/models/m"])
def test_an_unforeseen_failure_is_answered_like_anything_else(
    start: Start, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    gateway = start(log_requests=True, cors_origins=(ORIGIN,))

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Models, "names", broken)
    monkeypatch.setattr(Models, "resolve", broken)
    with structlog.testing.capture_logs() as lines:
        answer = gateway.client.get(path, headers={"X-Request-ID": "mine-2", "Origin": ORIGIN})
    assert answer.status_code == 500
    assert answer.json().keys() == ({"error"} if path.startswith("/v2") else {"type", "title", "status", "detail"})
    assert "broken" not in answer.text
    assert answer.headers["x-request-id"] == "mine-2"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    logged = [line for line in lines if line["event"] in ("request failed", "answered")]
    assert [(line["event"], line["path"], line.get("status")) for line in logged] == [
        ("request failed", path, None),
        ("answered", path, 500),
    ]
    route = "/v2/models/{name}" if path.startswith("/v2") else path
    counted = [
        line
        for line in gateway.client.get("/metrics").text.splitlines()
        if line.startswith("halfmoon_requests_total") and 'status="500"' in line
    ]
    assert counted == [f'halfmoon_requests_total{{method="GET",route="{route}",status="500"}} 1.0']


def test_lines_are_of_plain_numbers_and_bounded(start: Start) -> None:
    gateway = start(log_requests=True)
    with structlog.testing.capture_logs() as lines:
        gateway.client.get("/v1/" + "x" * 20_000)
    (line,) = [line for line in lines if line["event"] == "answered"]
    assert (repr(line["status"]), len(line["path"])) == ("404", 513)


def test_the_page_may_load_nothing_from_elsewhere(gateway: Gateway) -> None:
    answer = gateway.client.get("/docs")
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    (script,) = re.findall("<script>(.*?)</script>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy["script-src"] == f"'self' 'sha256-{digest}'"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"


def preflight(gateway: Gateway, origin: str) -> dict[str, str]:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    answer = gateway.client.options("/v1/models/m/predict", headers=asked)
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control")}


def test_no_page_from_elsewhere_may_call_by_default(gateway: Gateway) -> None:
    assert preflight(gateway, ORIGIN) == {}
    assert "access-control-allow-origin" not in gateway.client.get("/v1/jobs", headers={"Origin": ORIGIN}).headers


def test_a_page_that_a_setting_names_may_call(start: Start) -> None:
    gateway = start(cors_origins=(ORIGIN,), access="keys")
    assert preflight(gateway, ORIGIN)["access-control-allow-origin"] == ORIGIN
    assert "access-control-allow-origin" not in preflight(gateway, "https://other.example")
    # a browser hides from its page what is not marked as for it, also a refusal
    assert gateway.client.get("/v1/jobs", headers={"Origin": ORIGIN}).headers["access-control-allow-origin"] == ORIGIN


SERVED = """
import json, os, signal, socket, sys, threading
import httpx
from app.serve import serve
from app.settings import GatewaySettings

def ask():
    url, head = f"http://127.0.0.1:{port}", {"X-Request-ID": "mine-1"}
    documents = json.loads(sys.stdin.read())
    while True:
        try:
            answer = httpx.post(f"{url}/v1/datasets", json={"documents": documents})
            break
        except httpx.ConnectError:
            pass
    body = {"model": "m", "algorithm": "svm", "dataset": answer.json()["id"]}
    print(httpx.post(f"{url}/v1/jobs", json=body, headers=head).json()["id"])
    os.kill(os.getpid(), signal.SIGINT)

listening = socket.create_server(("127.0.0.1", 0))
port = listening.getsockname()[1]
threading.Thread(target=ask).start()
url, redis = sys.argv[1:]
serve(GatewaySettings(store_url=url, redis_url=redis, log_format="json", log_requests=True), listening.detach())
"""


def test_log_lines_say_to_which_request_and_job_they_belong(valkey: Valkey, tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-c", SERVED, f"file://{tmp_path}/store", valkey.url]
    done = subprocess.run(
        command,
        input=json.dumps(TWO_CLASSES),
        capture_output=True,
        text=True,
        cwd=repository,
        timeout=HANG,
        check=False,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    job = done.stdout.split()[0]
    (accepted,) = [line for line in lines if line["event"] == "job accepted"]
    assert (accepted["request"], accepted["job"]) == ("mine-1", job)
    answered = [
        (line["method"], line["path"], line["status"], line["request"]) for line in lines if line["event"] == "answered"
    ]
    assert ("POST", "/v1/jobs", 202, "mine-1") in answered
    assert all(line["level"] and line["timestamp"] for line in lines)


def test_answers_are_kept_nowhere_unless_they_say_so(gateway: Gateway) -> None:
    assert gateway.client.get("/v1/datasets").headers["cache-control"] == "no-store"
    assert gateway.client.get("/v1/datasets/ds-1").headers["cache-control"] == "no-store"
    assert gateway.client.get("/", headers={"Accept": "text/html"}).headers["cache-control"] == "no-cache"


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
