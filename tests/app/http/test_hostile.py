"""Clients that are slow, disconnect, or send decompression bombs: they hold nothing and leave nothing behind."""

import gzip
import io
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import numpy as np
import pytest

from app.codecs.base import in_blocks
from app.codecs.transport.encodings import Gunzip
from app.datasets import service as uploads
from app.http.sockets import body_timeout, connection
from storage.records import Job
from storage.repositories.jobs import Jobs
from tests.app.conftest import NDJSON, TWO_CLASSES, Gateway, Start, all_of, problem_of, publish
from tests.app.http.dialing import dial, head
from tests.calls import noted
from tests.waiting import HANG, until

LINE = b'{"indices": [1, 2, 3]}\n'


@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/models/m/predict"])
def test_a_body_that_stops_is_given_up(start: Start, path: str) -> None:
    gateway = start(body_idle_timeout_seconds=0.3)
    with dial(gateway) as client:
        client.sendall(head(path) + LINE)
        answer = all_of(client)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer.lower()
    assert b"/problems/too-slow" in answer
    assert gateway.kept() == []


@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/models/m/predict"])
def test_a_fast_beginning_does_not_pay_for_dripping(start: Start, path: str) -> None:
    gateway = start(body_idle_timeout_seconds=0.5, min_body_bytes_per_second=1000.0)
    with dial(gateway) as client:
        client.sendall(head(path) + LINE * 10_000)
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.05):
                try:
                    client.sendall(b" ")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            answer = client.recv(65536)
        finally:
            stop.set()
            thread.join()
    assert answer.startswith(b"HTTP/1.1 408 "), "what came at first would last for minutes"
    until(lambda: gateway.kept() == [])


def test_a_slow_service_is_not_the_fault_of_its_client(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only the service's own work moves, by more than a client has for the whole body."""
    gateway = start(body_idle_timeout_seconds=HANG, min_body_bytes_per_second=1e9)
    now = [0.0]

    def slowly(data: bytes) -> Iterator[bytes]:
        now[0] += 2 * HANG
        return in_blocks(data)

    monkeypatch.setattr(uploads, "in_blocks", slowly)
    monkeypatch.setattr(body_timeout, "time", SimpleNamespace(monotonic=lambda: now[0]))
    answer = gateway.client.post("/v1/datasets", content=LINE * 50_000, headers={"Content-Type": NDJSON})
    assert answer.status_code == 201, answer.text
    assert now[0] > 4 * HANG


def test_slow_uploads_hold_no_thread(start: Start) -> None:
    """More of them than there are threads, and others are served while they last."""
    gateway = start(parse_threads=1, body_idle_timeout_seconds=10 * HANG, max_concurrent_uploads_per_caller=30)
    clients = [dial(gateway) for _ in range(20)]
    try:
        for client in clients:
            client.sendall(head("/v1/datasets") + LINE)
        dataset = gateway.upload(TWO_CLASSES)["id"]
    finally:
        for client in clients:
            client.close()
    folder = f"datasets/{dataset}"
    until(lambda: all(path == folder or path.startswith(f"{folder}/") for path in gateway.kept()))


def test_a_head_that_never_ends_is_given_up(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    gateway = start()
    for sent in (
        b"",
        b"GET / HTTP/1.1\r\n",
        b"GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nX: ",
    ):
        with dial(gateway) as client:
            client.sendall(sent)
            answer = all_of(client)
            assert answer.endswith(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"), (
                sent
            )


UPGRADE = b"GET /v1/health/live HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: %d\r\n\r\n" % (1 << 40)
"""a request of which the parser reads no body, whatever length it says"""


@pytest.mark.parametrize("before", [b"", UPGRADE])
def test_a_head_without_bounds_is_refused(gateway: Gateway, before: bytes) -> None:
    with dial(gateway) as client:
        if before:
            client.sendall(before)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        try:
            client.sendall(b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * (1 << 20))
        except OSError:
            pass
        else:
            assert client.recv(65536).startswith(b"HTTP/1.1 431 ")
    assert gateway.client.get("/v1/health/live").status_code == 200


LIVE = b"GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\nX-Filler: " + b"x" * 500 + b"\r\n\r\n"


def test_requests_that_come_before_the_answers_are_all_answered(gateway: Gateway) -> None:
    """Far more than the bytes of a head, in reads with hundreds of requests."""
    with dial(gateway) as client:
        sender = threading.Thread(
            target=client.sendall, args=(LIVE * 2000 + LIVE.replace(b"Host", b"Connection: close\r\nHost"),)
        )
        sender.start()
        answers = all_of(client)
        sender.join()
    assert answers.count(b"HTTP/1.1 200 OK") == answers.count(b'{"status":"live"}') == 2001
    assert answers.count(b"HTTP/1.1 ") == 2001


LONG = 3 * connection.PART_BYTES


@pytest.mark.parametrize(
    "before", [b"", b"POST /v1/health/live HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % LONG + b"x" * LONG]
)
def test_no_more_than_a_part_is_parsed_while_others_wait(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    waiting = noted(monkeypatch, connection.Connection, "on_message_begin", lambda self: len(self.pipeline))
    request = b"GET /v1/health/live HTTP/1.1\r\n\r\n"
    with dial(gateway) as client:
        client.sendall(before + request * 5_000 + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert all_of(client).count(b"HTTP/1.1 200 OK") == 5_001
    assert max(waiting) <= connection.PART_BYTES // len(request)


def test_a_head_without_bounds_costs_no_answer_of_a_request_before(gateway: Gateway) -> None:
    with dial(gateway) as client:
        client.sendall(LIVE + b"GET / HTTP/1.1\r\nX: " + b"y" * (connection.HEAD_BYTES + connection.PART_BYTES))
        answers = all_of(client)
    assert answers.startswith(b"HTTP/1.1 200 OK")
    assert b'{"status":"live"}' in answers
    assert answers.endswith(
        b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )


def test_a_head_may_wait_for_the_answer_to_the_request_before(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
    gateway = start()
    job = gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"]).json()["id"]
    timers = noted(monkeypatch, connection.Connection, "_time_out_head", lambda self: self)
    with dial(gateway) as client:
        client.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/health/l".encode())
        until(lambda: len(timers) > 3)
        gateway.client.post(f"/v1/jobs/{job}/cancel").raise_for_status()
        answers = all_of(client)
    assert b'"state":"cancelled"' in answers
    assert answers.endswith(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


def test_an_idle_connection_between_requests_is_uvicorns(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a head has ended, no patience with heads is kept until the next begins."""
    made: SimpleQueue[connection.Connection] = SimpleQueue()
    noted(monkeypatch, connection.Connection, "_start_head_timer", made.put)
    gateway = start()
    with dial(gateway) as client:
        known = made.get(timeout=HANG)
        for _ in range(2):
            client.sendall(b"GET /v1/health/live HTTP/1.1\r\n")
            assert made.get(timeout=HANG) is known
            client.sendall(b"Host: localhost\r\n\r\n")
            until(lambda: client.recv(65536).endswith(b'{"status":"live"}'))
            assert known._head_timer is None


def test_two_hundred_listeners_cost_as_many_looks_as_one(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    job = gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"]).json()["id"]
    looks: list[float] = []
    look = Jobs.get

    def counted(self: Jobs, id: str) -> Job:
        if threading.current_thread().name.startswith("follow"):
            looks.append(time.monotonic())
        return look(self, id)

    monkeypatch.setattr(Jobs, "get", counted)
    clients = [dial(gateway) for _ in range(200)]
    try:
        for client in clients:
            client.sendall(
                f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
        for client in clients:
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        threads = threading.active_count()
        gateway.client.post(f"/v1/jobs/{job}/cancel").raise_for_status()
        for client in clients:
            assert b'"state":"cancelled"' in all_of(client)
    finally:
        for client in clients:
            client.close()
    assert len(looks) <= 2 + 1.2 * (looks[-1] - looks[0]) / 0.25
    assert sum(thread.name.startswith("follow") for thread in threading.enumerate()) <= 2
    assert threading.active_count() <= threads + 2
    until(lambda: gateway.client.get(f"/v1/jobs/{job}").json()["state"] == "cancelled")


@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/models/m/predict", "/v1/jobs"])
def test_many_that_leave_leave_nothing(gateway: Gateway, path: str) -> None:
    for n in range(20):
        with dial(gateway) as client:
            client.sendall(head(path, "application/json" if path.endswith("jobs") else NDJSON) + LINE * n * 1000)
    until(lambda: gateway.kept() == [])
    # what they held of the limits of a caller is given back, too
    until(lambda: gateway.client.post("/v1/datasets", json={"documents": TWO_CLASSES}).status_code == 201)


@cache
def bomb_of_gzip() -> bytes:
    return gzip.compress(LINE * 2_000_000)


@cache
def bomb_of_zip() -> bytes:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (10_000, 1000)})
        for _ in range(100):
            member.write(bytes(400_000))
    return buffer.getvalue()


def counted_unpacking(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the pieces that gzip and zip give out from now on."""
    sizes: list[int] = []
    feed, read = Gunzip.feed, zipfile.ZipExtFile.read

    def fed(self: Gunzip, data: bytes) -> Iterator[bytes]:
        for piece in feed(self, data):
            sizes.append(len(piece))
            yield piece

    def given(self: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        sizes.append(len(piece := read(self, n)))
        return piece

    monkeypatch.setattr(Gunzip, "feed", fed)
    monkeypatch.setattr(zipfile.ZipExtFile, "read", given)
    return sizes


@pytest.mark.parametrize(
    ("media_type", "encoding", "make"),
    [
        (NDJSON, "gzip", bomb_of_gzip),
        ("application/x-npz", "identity", bomb_of_zip),
        ("application/x-npz", "gzip", lambda: gzip.compress(bomb_of_zip())),
    ],
)
@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/models/m/predict"])
def test_a_bomb_stops_at_the_limit(
    start: Start, monkeypatch: pytest.MonkeyPatch, path: str, media_type: str, encoding: str, make: Callable[[], bytes]
) -> None:
    gateway = start(max_decompressed_bytes=1_000_000, max_request_bytes=1_000_000)
    publish(gateway.store, "m")
    before, body = gateway.kept(), make()
    assert len(body) < 200_000
    unpacked = counted_unpacking(monkeypatch)
    answer = gateway.client.post(path, content=body, headers={"Content-Type": media_type, "Content-Encoding": encoding})
    assert problem_of(answer, 413)["detail"] == "more than 1000000 bytes in the decompressed body"
    assert sum(unpacked) <= 2_000_000, "of 40 MB or more"
    assert gateway.kept() == before


HOSTILE = ["../x", "..", ".hidden", "a/b", "a\x00b", "", " ", "é", "a" * 129, "-a", "a\nb"]


def test_no_name_leaves_the_store(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    # the name of a dataset is in no path, and may be any line
    first, *_ = [
        gateway.client.post("/v1/datasets", params={"name": name}, json={"documents": TWO_CLASSES}) for name in HOSTILE
    ]
    dataset = first.json()["id"]
    kept = gateway.kept()
    for name in HOSTILE:
        refuses(gateway, name, dataset)
    assert gateway.kept() == kept
    assert {path.name for path in tmp_path.iterdir()} == {"outside", "store"}
    assert list((tmp_path / "outside").iterdir()) == []


def refuses(gateway: Gateway, name: str, dataset: str) -> None:
    problem_of(gateway.job(dataset=dataset, model=name), 422)
    quoted = "".join(f"%{byte:02x}" for byte in name.encode())
    calls = [
        ("GET", "/v1/datasets/{}"),
        ("DELETE", "/v1/datasets/{}"),
        ("GET", "/v1/jobs/{}"),
        ("GET", "/v1/jobs/{}/labels"),
    ]
    calls += [
        ("GET", "/v1/models/{}"),
        ("DELETE", "/v1/models/{}"),
        ("DELETE", "/v1/models/{}/versions/1"),
        ("DELETE", "/v1/models/m/aliases/{}"),
    ]
    for method, path in calls:
        answer = gateway.client.request(method, path.format(quoted))
        assert answer.status_code in (404, 405), (method, path, answer.text)
    body = {"documents": [{"indices": [0]}]}
    assert gateway.client.post(f"/v1/models/{quoted}/predict", json=body).status_code in (404, 405)
    assert gateway.client.put(f"/v1/models/m/aliases/{quoted}", json={"version": 1}).status_code in (404, 405, 422)
