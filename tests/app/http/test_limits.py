"""Quotas of the store, and limits on the concurrent use by requests."""

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.codecs.transport.encodings import Gunzip
from app.errors import TooManyRequests
from app.http.access import KEY_ID, caller_of
from app.services.admission import Backlog
from storage.errors import StoreUnavailable
from storage.records import Job
from storage.repositories.api_keys import ApiKeys, Scope
from storage.repositories.datasets import Datasets
from storage.repositories.datasets.quota import Quota
from storage.repositories.jobs import Jobs
from tests.app.conftest import NDJSON, TWO_CLASSES, Gateway, Start, problem_of, publish
from tests.calls import noted
from tests.waiting import HANG, SOON, until

LINE = b'{"indices": [1, 2, 3]}\n'


def test_so_many_datasets_and_no_more(start: Start) -> None:
    gateway = start(max_datasets=2)
    first = gateway.upload(TWO_CLASSES)
    gateway.upload(TWO_CLASSES)
    answer = gateway.client.post("/v1/datasets", json={"documents": TWO_CLASSES})
    assert problem_of(answer, 507)["type"] == "/problems/quota-exceeded"
    problem_of(gateway.client.put(f"/v1/datasets/{first['id']}/labels", json={"labels": {"c": "no"}}), 507)
    problem_of(gateway.job(documents=TWO_CLASSES), 507)
    gateway.client.delete(f"/v1/datasets/{first['id']}")
    gateway.upload(TWO_CLASSES)


def test_so_many_bytes_of_datasets_and_no_more(start: Start) -> None:
    gateway = start(max_total_dataset_bytes=4120)
    answer = gateway.client.post("/v1/datasets", content=LINE * 1000, headers={"Content-Type": NDJSON})
    problem_of(answer, 413)
    assert gateway.kept() == []
    gateway.client.post("/v1/datasets", content=LINE * 100, headers={"Content-Type": NDJSON}).raise_for_status()
    answer = gateway.client.post("/v1/datasets", content=LINE * 100, headers={"Content-Type": NDJSON})
    assert problem_of(answer, 507)["detail"].startswith("there may be no more than 4120 bytes")


def test_files_that_datasets_share_are_counted_once(gateway: Gateway) -> None:
    store = gateway.store
    quota, datasets = Quota(store, 10, None), Datasets(store)
    base = gateway.upload(TWO_CLASSES)["id"]
    _, alone = quota.used()
    datasets.relabel(base, {"c": "no"})
    count, both = quota.used()
    labels = datasets.get(base).files["labels"].bytes
    assert (count, both) == (2, alone + labels)
    datasets.delete(base)
    quota.recount()
    assert quota.used() == (1, alone)
    assert Quota(store, 2, alone + 7).left() == 7


def test_so_many_unfinished_jobs_by_everybody(start: Start) -> None:
    gateway = start(max_unfinished_jobs_per_key=2)
    dataset = gateway.upload(TWO_CLASSES)["id"]
    accepted = [gateway.job(dataset=dataset) for _ in range(2)]
    assert [answer.headers["ratelimit"] for answer in accepted] == ['"jobs";r=1', '"jobs";r=0']
    assert accepted[0].headers["ratelimit-policy"] == '"jobs";q=2;qu="concurrent-requests"'
    refused = gateway.job(dataset=dataset)
    assert problem_of(refused, 429)["type"] == "/problems/too-many"
    assert (refused.headers["ratelimit"], refused.headers["retry-after"]) == ('"jobs";r=0;t=5', "5")
    gateway.client.post(f"/v1/jobs/{accepted[0].json()['id']}/cancel").raise_for_status()
    assert gateway.job(dataset=dataset).status_code == 202


def test_a_job_that_is_asked_for_again_is_no_other_job(start: Start) -> None:
    gateway = start(max_unfinished_jobs_per_key=1)
    dataset = gateway.upload(TWO_CLASSES)["id"]
    body = {"model": "m", "algorithm": "svm", "dataset": dataset}
    answers = [gateway.client.post("/v1/jobs", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json()["id"] == answers[1].json()["id"]


def test_each_key_has_its_own_share_of_jobs(start: Start) -> None:
    gateway = start(access="keys", key_refresh_seconds=0.05, max_unfinished_jobs_per_key=1, max_unfinished_jobs=2)
    keys = [ApiKeys(gateway.store).create(name, {Scope.TRAIN})[1] for name in ("a", "b", "c")]
    heads = [{"X-API-Key": key} for key in keys]
    until(lambda: gateway.client.get("/v1/jobs", headers=heads[2]).status_code == 200)
    dataset = gateway.client.post("/v1/datasets", json={"documents": TWO_CLASSES}, headers=heads[0]).json()["id"]
    body = {"model": "m", "algorithm": "svm", "dataset": dataset}
    assert [
        gateway.client.post("/v1/jobs", json=body, headers=head).status_code for head in heads for _ in range(2)
    ] == [
        202,
        429,
        202,
        429,
        429,
        429,
    ]
    assert [job.request.caller is not None for job in Jobs(gateway.store).unfinished()] == [True, True]


def test_a_refusal_names_the_limit_that_was_reached(start: Start) -> None:
    gateway = start(max_unfinished_jobs=1, max_unfinished_jobs_per_key=5)
    dataset = gateway.upload(TWO_CLASSES)["id"]
    assert (
        gateway.job(dataset=dataset).headers["ratelimit-policy"] == '"jobs of everybody";q=1;qu="concurrent-requests"'
    )
    refused = gateway.job(dataset=dataset)
    assert problem_of(refused, 429)["detail"].startswith("jobs of everybody: no more than 1 at a time")
    assert (refused.headers["ratelimit-policy"], refused.headers["ratelimit"]) == (
        '"jobs of everybody";q=1;qu="concurrent-requests"',
        '"jobs of everybody";r=0;t=5',
    )


def test_an_accepted_job_is_answered_though_the_store_is_unavailable(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, create = gateway.upload(TWO_CLASSES)["id"], Jobs.create

    def last(self: Jobs, *arguments: Any) -> tuple[Job, bool]:
        made = create(self, *arguments)
        monkeypatch.setattr(Jobs, "unfinished_ids", away)
        monkeypatch.setattr(Jobs, "get", away)
        return made

    def away(*_: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(Jobs, "create", last)
    answer = gateway.job(dataset=dataset)
    assert (answer.status_code, answer.headers["ratelimit"]) == (202, '"jobs";r=999')


def test_the_key_of_a_job_is_read_once(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs(gateway.store)
    dataset = gateway.upload(TWO_CLASSES)["id"]
    for _ in range(3):
        gateway.job(dataset=dataset)
    backlog = Backlog(jobs, 10, 3)
    with pytest.raises(TooManyRequests, match=r"^jobs: no more than 3 at a time"):
        backlog.allowance(None).check()
    monkeypatch.setattr(Jobs, "get", lambda self, id: pytest.fail("looked up again"))
    backlog.allowance("key-other").check()


def test_so_many_uploads_at_a_time(start: Start) -> None:
    gateway = start(max_concurrent_uploads=1)
    started, go_on = threading.Event(), threading.Event()

    def slowly() -> Iterator[bytes]:
        yield LINE
        started.set()
        go_on.wait(SOON)
        yield LINE

    def upload() -> None:
        answers.append(gateway.client.post("/v1/datasets", content=slowly(), headers={"Content-Type": NDJSON}))

    answers: list[httpx.Response] = []
    thread = threading.Thread(target=upload)
    thread.start()
    assert started.wait(SOON)
    with httpx.Client(base_url=gateway.client.base_url, verify=False, timeout=HANG) as other:
        until(lambda: other.post("/v1/datasets", json={"documents": TWO_CLASSES}).status_code == 429)
        refused = other.post("/v1/datasets", json={"documents": TWO_CLASSES})
        assert refused.headers["ratelimit-policy"] == '"uploads";q=1;qu="concurrent-requests"'
        assert refused.headers["retry-after"] == "1"
    go_on.set()
    thread.join()
    assert answers[0].status_code == 201
    gateway.upload(TWO_CLASSES)


def test_so_many_bytes_of_bodies_in_memory_at_a_time(start: Start) -> None:
    gateway = start(max_buffered_bytes=10_000)
    large = {"labels": {f"d{n}": "x" for n in range(2000)}}
    refused = gateway.client.put("/v1/datasets/ds-x/labels", json=large)
    assert problem_of(refused, 429)["detail"].startswith("bodies in memory: no more than 10000")
    problem_of(gateway.client.put("/v1/datasets/ds-x/labels", json={"labels": {}}), 404)


def test_what_a_body_unpacks_to_counts_too(start: Start) -> None:
    gateway = start(max_buffered_bytes=100_000)
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    labels = gzip.compress(json.dumps({"labels": {"d": "x" * 200_000}}).encode())
    documents = gzip.compress(b'{"documents": [' + b'{"indices":[0]},' * 10_000 + b'{"indices":[0]}]}')
    assert len(labels) + len(documents) < 10_000
    publish(gateway.store)
    for answer in (
        gateway.client.put("/v1/datasets/ds-x/labels", content=labels, headers=packed),
        gateway.client.post("/v1/models/news/predict", content=documents, headers=packed),
    ):
        assert problem_of(answer, 429)["detail"].startswith("bodies in memory: no more than 100000")
    assert "halfmoon_body_bytes 0.0" in gateway.client.get("/metrics").text
    small = gzip.compress(b'{"documents": [{"indices":[0]}]}')
    assert gateway.client.post("/v1/models/news/predict", content=small, headers=packed).status_code == 200


def test_packed_json_is_never_unpacked_on_the_event_loop(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = noted(monkeypatch, Gunzip, "feed", lambda *_: threading.current_thread().name)
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    problem_of(
        gateway.client.put("/v1/datasets/ds-x/labels", content=gzip.compress(b'{"labels": {}}'), headers=packed), 404
    )
    assert [name.partition("_")[0] for name in threads] == ["parse"]


@pytest.mark.parametrize(
    ("connection", "caller"),
    [
        ({"client": ("192.0.2.7", 5), KEY_ID: "key-a"}, "key-a"),
        ({"client": ("192.0.2.7", 5)}, "192.0.2.7"),
        ({"client": ("2001:db8:1:2:3::4", 5)}, "2001:db8:1:2::/64"),
        ({"client": ("fe80::1%eth0", 5)}, "fe80::/64"),
        ({"client": None}, ""),
        ({}, ""),
    ],
)
def test_a_caller_is_a_key_or_an_address(connection: dict[str, Any], caller: str) -> None:
    assert caller_of(connection) == caller


def test_one_caller_that_drips_does_not_keep_others_from_uploading(start: Start) -> None:
    gateway = start(
        access="keys", key_refresh_seconds=0.05, max_concurrent_uploads_per_caller=2, max_concurrent_uploads=4
    )
    dripping, other = (ApiKeys(gateway.store).create(name, {Scope.TRAIN})[1] for name in ("a", "b"))
    until(lambda: gateway.client.get("/v1/jobs", headers={"X-API-Key": other}).status_code == 200)
    clients = [socket.create_connection(("127.0.0.1", gateway.port), timeout=HANG) for _ in range(2)]
    head = (
        f"POST /v1/datasets HTTP/1.1\r\nHost: x\r\nX-API-Key: {dripping}\r\nContent-Type: "
        f"{NDJSON}\r\nContent-Length: 9999\r\n\r\n"
    )
    try:
        for client in clients:
            client.sendall(head.encode() + LINE)
        until(lambda: "halfmoon_uploads 2.0" in gateway.client.get("/metrics", headers={"X-API-Key": other}).text)
        assert problem_of(post(gateway, dripping), 429)["detail"].startswith(
            "uploads of one caller: no more than 2 at a time"
        )
        assert post(gateway, other).status_code == 201
    finally:
        for client in clients:
            client.close()


def test_one_caller_that_holds_bodies_does_not_keep_others_from_predicting(start: Start) -> None:
    gateway = start(
        access="keys", key_refresh_seconds=0.05, max_buffered_bytes_per_caller=100_000, max_buffered_bytes=200_000
    )
    publish(gateway.store)
    holding, other = (ApiKeys(gateway.store).create(name, {Scope.PREDICT})[1] for name in ("a", "b"))
    until(lambda: gateway.client.get("/v1/models", headers={"X-API-Key": other}).status_code == 200)
    head = (
        f"POST /v1/models/news/predict HTTP/1.1\r\nHost: x\r\nX-API-Key: {holding}\r\nContent-Type: "
        f"{NDJSON}\r\nContent-Length: 99999\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=HANG) as client:
        client.sendall(head.encode() + LINE * 4000)
        until(lambda: _held(gateway, other) >= 4000 * len(LINE) - 65536)
        assert problem_of(predict(gateway, holding, 4000), 429)["detail"].startswith(
            "bodies in memory of one caller: no more than 100000 at a time"
        )
        assert predict(gateway, other, 1000).status_code == 200


def _held(gateway: Gateway, key: str) -> float:
    text = gateway.client.get("/metrics", headers={"X-API-Key": key}).text
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith("halfmoon_body_bytes ")))


def post(gateway: Gateway, key: str) -> httpx.Response:
    return gateway.client.post("/v1/datasets", json={"documents": TWO_CLASSES}, headers={"X-API-Key": key})


def predict(gateway: Gateway, key: str, n_documents: int) -> httpx.Response:
    return gateway.client.post(
        "/v1/models/news/predict", content=LINE * n_documents, headers={"X-API-Key": key, "Content-Type": NDJSON}
    )


@pytest.mark.parametrize("trusted", [("127.0.0.1",), ()])
def test_neighbours_behind_a_proxy_have_their_own_share(start: Start, trusted: tuple[str, ...]) -> None:
    """Of a proxy that is trusted the address that it forwards counts, of any other its own."""
    gateway = start(max_concurrent_uploads_per_caller=1, trusted_proxies=trusted)
    head = (
        "POST /v1/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n"
        "X-Forwarded-For: 203.0.113.1\r\n\r\ntext,label\n"
    )
    with socket.create_connection(("127.0.0.1", gateway.port)) as slow:
        slow.sendall(head.encode())
        until(lambda: "halfmoon_uploads 1.0" in gateway.client.get("/metrics").text)

        def upload(address: str) -> int:
            headers = {"X-Forwarded-For": address, "Content-Type": "text/csv"}
            return gateway.client.post("/v1/datasets", content="text,label\na,b\n", headers=headers).status_code

        assert upload("203.0.113.1") == 429
        assert upload("203.0.113.2") == (201 if trusted else 429)
