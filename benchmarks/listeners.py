"""Costs for a gateway of clients that listen to the events of a running job."""

import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx

from benchmarks.base import number, table
from benchmarks.documents import as_json, as_npz, documents, labels_of
from benchmarks.load import connected, request
from benchmarks.running import Service, anonymous

_LISTENERS = (0, 200)
_SECONDS = 8.0
_DOCUMENTS = 60_000
_PACE = 0.02


class Cost(NamedTuple):
    """Of so many listeners for some seconds."""

    listeners: int
    processor: float
    """percent of one, the predictions among it"""
    memory: float
    """bytes"""
    latency: float
    """median seconds of a small prediction meanwhile"""
    events: int
    """that they got"""


def listened(running: Service) -> str:
    """Nobody and two hundred, at a job that trains all the while."""
    with _training(running) as job:
        costs = [_cost(running, job, count) for count in _LISTENERS]
    none, many = costs
    each = (many.memory - none.memory) / many.listeners
    rows = [
        [c.listeners, f"{c.processor:.1f} %", number(1000 * c.latency), number(c.memory / 1e6), c.events] for c in costs
    ]
    heads = [
        "listeners",
        "of a processor",
        "median ms of a prediction meanwhile",
        "MB of memory without files",
        "events received",
    ]
    return (
        f"## Listeners\n\nClients that listen to the events of one running job, for {_SECONDS:g} s each, "
        "beside fifty small predictions a second; "
        f"the job computes meanwhile on the same machine.\n\n{table(heads, rows)}\n"
        f"A listener takes {number(each / 1024)} KiB of memory and "
        f"{number((many.processor - none.processor) / many.listeners)} % of a processor.\n"
    )


@contextmanager
def _training(running: Service) -> Iterator[str]:
    given = documents(_DOCUMENTS)
    dataset = running.upload(
        as_npz(given, [label if place < 2_000 else "" for place, label in enumerate(labels_of(given))])
    )
    options = {"tolerance": 1e-12, "max_iterations": 1_000_000}
    job = str(
        running.post("/v1/jobs", {"dataset": dataset, "model": "listened", "algorithm": "da", "options": options})["id"]
    )
    running.until(job, "running")
    try:
        yield job
    finally:
        running.post(f"/v1/jobs/{job}/cancel", {})


def _cost(running: Service, job: str, count: int) -> Cost:
    parts = urlsplit(running.url)
    question = request("/v1/models/m0/predict", as_json(documents(5, seed=1)))
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_connection((parts.hostname, parts.port))) for _ in range(count)]
        for listener in listeners:
            listener.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        time.sleep(1.0)
        before, begun = sum(running.gateway.cpu_times()[:2]), time.monotonic()
        latencies = _asked(running.url, question, begun + _SECONDS)
        share = (sum(running.gateway.cpu_times()[:2]) - before) / (time.monotonic() - begun)
        memory = anonymous(running.gateway)
        events = sum(_received(listener).count(b"event: ") for listener in listeners)
    still = httpx.get(f"{running.url}/v1/jobs/{job}", trust_env=False).json()["state"]
    if still != "running":
        raise RuntimeError(f"the job that was listened to is {still}")
    return Cost(count, 100 * share, memory, statistics.median(latencies), events)


def _asked(url: str, question: bytes, deadline: float) -> list[float]:
    taken = []
    with connected(url) as connection:
        while (begun := time.monotonic()) < deadline:
            connection.send(question)
            taken.append(time.monotonic() - begun)
            time.sleep(max(0.0, _PACE - taken[-1]))
    return taken


def _received(listener: socket.socket) -> bytes:
    listener.setblocking(False)
    parts = []
    try:
        while part := listener.recv(1 << 20):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)
