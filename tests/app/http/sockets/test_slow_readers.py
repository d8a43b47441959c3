"""Clients that do not read their answers: memory for them is bounded and counted, and they are disconnected."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.http.middleware import CHUNK_BYTES
from app.http.sockets import connection
from storage.queue.connection import connect
from storage.queue.redis_state import RedisState
from storage.records import Progress
from storage.repositories.jobs import Jobs
from tests.app.conftest import TWO_CLASSES, Gateway, Start, all_of, problem_of, publish
from tests.calls import meanwhile, noted
from tests.stores import Valkey
from tests.waiting import HANG, SOON, until

LINES = b'{"indices":[0]}\n' * 100_000
"""documents whose prediction is more than the system itself holds for a client"""


@contextmanager
def deaf(gateway: Gateway, request: bytes) -> Iterator[socket.socket]:
    """A client that has asked and reads nothing unless the block does."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(SOON)
        client.connect(("127.0.0.1", gateway.port))
        client.sendall(request)
        yield client


def prediction(body: bytes = LINES, head: str = "") -> bytes:
    return (
        f"POST /v1/models/news/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n{head}"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


def events(job: str) -> bytes:
    return f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def drained(client: socket.socket) -> int:
    """Bytes that still came until the end or the reset of the connection."""
    size = 0
    try:
        while part := client.recv(1 << 20):
            size += len(part)
    except ConnectionResetError:
        pass
    return size


@pytest.mark.parametrize("head", ["", "Connection: close\r\n"])
def test_who_does_not_read_an_answer_is_given_up(start: Start, monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    given_up = threading.Event()
    meanwhile(monkeypatch, connection.Connection, "_abort", given_up.set, after=True)
    monkeypatch.setattr(connection, "WRITE_SECONDS", 0.3)
    gateway = start()
    publish(gateway.store)
    with deaf(gateway, prediction(head=head)) as client:
        assert given_up.wait(SOON)
        until(lambda: gateway.measured("halfmoon_body_bytes") == 0)
        # what the system had taken, and no more
        assert 0 < drained(client) < 600_000
    assert gateway.client.post("/v1/models/news/predict", json={"documents": [{"indices": [0]}]}).status_code == 200


def test_who_reads_slowly_gets_everything(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: patience begins anew whenever some of it was read; fails when it began once for all."""
    timer_was_off = noted(
        monkeypatch, connection.Connection, "_start_write_timer", lambda self: self._write_timer is None
    )
    monkeypatch.setattr(connection, "WRITE_SECONDS", HANG)
    gateway = start()
    publish(gateway.store)
    with deaf(gateway, prediction()) as client:
        answer = b""
        while not answer.endswith(b'"warnings":[]}'):
            part = client.recv(256 << 10)
            assert part, "the connection was ended"
            answer += part
        assert sum(timer_was_off) > 5
    head, _, body = answer.partition(b"\r\n\r\n")
    assert int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]) == len(body)


def test_unread_answers_count_as_memory_that_is_held(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WRITE_SECONDS", 10 * HANG)
    gateway = start(max_buffered_bytes=len(LINES) + (2 << 20))
    publish(gateway.store)
    with deaf(gateway, prediction()) as client:
        until(lambda: gateway.measured("halfmoon_body_bytes") > len(LINES))
        answer = gateway.client.post(
            "/v1/models/news/predict", content=LINES, headers={"Content-Type": "application/x-ndjson"}
        )
        assert problem_of(answer, 429)["detail"].startswith("bodies in memory: no more than")
        drained_soon = client.recv(1)
        assert drained_soon
    until(lambda: gateway.measured("halfmoon_body_bytes") == 0)


def test_an_answer_beyond_the_limit_is_not_sent(start: Start) -> None:
    body = b'{"indices":[0]}\n' * 10_000
    gateway = start(max_buffered_bytes=len(body) + 1000)
    publish(gateway.store)
    answer = gateway.client.post(
        "/v1/models/news/predict", content=body, headers={"Content-Type": "application/x-ndjson"}
    )
    problem_of(answer, 429)
    assert int(answer.headers["retry-after"]) > 0
    assert gateway.measured("halfmoon_body_bytes") == 0


def test_who_does_not_read_events_is_given_up(start: Start, valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WRITE_SECONDS", 0.3)
    gateway = start(event_poll_seconds=0.01, lease_seconds=HANG)
    job = gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"]).json()["id"]
    Jobs(gateway.store).claim_attempt(job, "worker")  # only a running job has progress
    with deaf(gateway, events(job)) as client, connect(valkey.url, HANG) as redis:
        redis_state, published, deadline = RedisState(redis), 0, time.monotonic() + HANG
        until(lambda: gateway.measured("halfmoon_listeners") == 1)
        while gateway.measured("halfmoon_listeners"):
            assert time.monotonic() < deadline, "the listener is still served"
            redis_state.publish_progress(job, Progress(phase=f"{published} " + "x" * 300_000, iteration=published))
            published += 1
            time.sleep(0.02)
        assert drained(client) < 2e6


@pytest.mark.usefixtures("version")
def test_long_answers_leave_in_pieces_that_are_the_whole(gateway: Gateway) -> None:
    for count in (1, CHUNK_BYTES // 20, CHUNK_BYTES):
        documents = b'{"indices":[0]}\n' * count
        answer = gateway.client.post(
            "/v1/models/news/predict", content=documents, headers={"Content-Type": "application/x-ndjson"}
        )
        assert answer.headers["content-length"] == str(len(answer.content))
        assert len(answer.json()["labels"]) == count


def test_so_many_connections_and_no_more(start: Start) -> None:
    gateway = start(max_connections=5)
    job = gateway.job(dataset=gateway.upload(TWO_CLASSES)["id"]).json()["id"]
    gateway.client.close()
    listeners = [socket.create_connection(("127.0.0.1", gateway.port), timeout=HANG) for _ in range(5)]
    try:
        for listener in listeners:
            listener.sendall(events(job))
            assert listener.recv(100).startswith(b"HTTP/1.1 200 ")
        asked = {
            path: ask(gateway, path) for path in ("/v1/jobs", "/v2/models/m", "/v1/health/live", "/v2/health/live")
        }
        for path in ("/v1/jobs", "/v2/models/m"):
            head = asked[path].partition(b"\r\n\r\n")[0].lower()
            assert head.startswith(b"http/1.1 429 ")
            assert {
                b"connection: close",
                b"retry-after: 1",
                b'ratelimit-policy: "connections";q=5;qu="connections"',
            } <= set(head.split(b"\r\n"))
        assert b'"type":"/problems/too-many"' in asked["/v1/jobs"]
        assert b'{"error":"connections: no more than 5' in asked["/v2/models/m"]
        assert all(asked[path].startswith(b"HTTP/1.1 200 ") for path in ("/v1/health/live", "/v2/health/live"))
        listeners.pop().close()
        until(lambda: ask(gateway, "/v1/jobs").startswith(b"HTTP/1.1 200 "))
    finally:
        for listener in listeners:
            listener.close()


def ask(gateway: Gateway, path: str) -> bytes:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=HANG) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return all_of(client)
