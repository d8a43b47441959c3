"""Blocking work in steps: the threads serve others in between, and work ends when its client has left."""

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import AsyncMock, Mock

import numpy as np
import pytest
from starlette.requests import ClientDisconnect

from app.codecs import dispatch
from app.codecs.arrays import npz
from app.http import requests
from storage.repositories.datasets import Batch, DatasetBuilder
from tests.app.codecs import encodings
from tests.app.conftest import TWO_CLASSES, Gateway, Start
from tests.app.http.dialing import dial, head
from tests.waiting import SOON, until


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn of one step, however little time it takes."""
    monkeypatch.setattr(requests, "_TURN_SECONDS", 0.0)


@pytest.mark.usefixtures("short_turns")
def test_long_work_of_two_takes_turns_in_one_thread() -> None:
    done: list[str] = []

    def work(name: str) -> Iterator[str]:
        for _ in range(50):
            done.append(name)
            yield name

    async def both(executor: ThreadPoolExecutor) -> list[list[str]]:
        return await asyncio.gather(*(requests.in_steps(None, executor, work(name)) for name in "ab"))

    with ThreadPoolExecutor(1) as executor:
        assert asyncio.run(both(executor)) == [["a"] * 50, ["b"] * 50]
    assert not re.search("a{3}|b{3}", "".join(done[:90])), "each waits for two steps of the other at most"


@pytest.mark.usefixtures("short_turns")
def test_work_ends_when_its_client_has_left() -> None:
    done: list[int] = []

    def work() -> Iterator[int]:
        for step in range(100):
            done.append(step)
            yield step

    async def run(executor: ThreadPoolExecutor) -> None:
        request: Any = Mock(is_disconnected=AsyncMock(side_effect=[False, False, False, True]))
        with pytest.raises(ClientDisconnect):
            await requests.in_steps(request, executor, work())

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(run(executor))
    assert done == [0, 1, 2, 3]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event, list[int]]]:
    """Many small steps: an event for the first, one that lets it go on, and the rows of all."""
    monkeypatch.setattr(npz, "_SLICE_ROWS", 1)
    begun, go_on, rows = threading.Event(), threading.Event(), []
    batch_of = npz._batch

    def counted(arrays: Any, found: Any, classes: Any) -> Batch:
        rows.append(found.n_rows)
        begun.set()
        assert go_on.wait(SOON)
        return batch_of(arrays, found, classes)

    monkeypatch.setattr(npz, "_batch", counted)
    yield begun, go_on, rows
    go_on.set()


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/models/news/predict", "/v1/models/news/evaluate"])
def test_a_matrix_whose_client_has_left_is_not_read_on(
    gateway: Gateway, steps: tuple[threading.Event, threading.Event, list[int]], path: str
) -> None:
    before, body = gateway.kept(), encodings.npz({"X": np.ones((400, 50), np.float32, order="F")})
    begun, go_on, rows = steps
    with dial(gateway) as client:
        client.sendall(head(path, "application/x-npz", len(body)) + body)
        assert begun.wait(SOON)
        client.shutdown(socket.SHUT_RDWR)
    until(lambda: gateway.client.get("/v1/health/live").status_code == 200)
    go_on.set()
    until(lambda: gateway.kept() == before)
    until(lambda: "halfmoon_body_bytes 0.0" in gateway.client.get("/metrics").text)
    assert sum(rows) < 300, "of 400"


@pytest.mark.usefixtures("short_turns")
def test_documents_of_two_jobs_take_turns_in_one_thread(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "BLOCK_BYTES", 64)
    gateway = start(parse_threads=1)
    begun, go_on, order = threading.Event(), threading.Event(), []
    add = DatasetBuilder.add

    def noted(builder: DatasetBuilder, batch: Batch) -> None:
        order.append(builder)
        begun.set()
        assert go_on.wait(SOON)
        add(builder, batch)

    monkeypatch.setattr(DatasetBuilder, "add", noted)
    with ThreadPoolExecutor(2) as clients:
        first = clients.submit(gateway.job, documents=TWO_CLASSES)
        assert begun.wait(SOON)
        before = gateway.measured("halfmoon_body_bytes")
        second = clients.submit(gateway.job, documents=TWO_CLASSES)
        until(lambda: gateway.measured("halfmoon_body_bytes") > before)
        go_on.set()
        assert (first.result().status_code, second.result().status_code) == (202, 202)
    one, other = order[0], next(builder for builder in order if builder is not order[0])
    assert order.index(other) < max(at for at, builder in enumerate(order) if builder is one)
