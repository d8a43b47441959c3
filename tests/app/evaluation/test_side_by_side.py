"""Evaluations beside each other and beside predictions, and after their client left."""

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.http import requests
from app.predictions import scoring
from core.documents.rows import SparseRows
from core.models.model import LinearModel
from tests.app.conftest import Gateway, Start, problem_of, publish
from tests.app.evaluation.evaluations import drawn, evaluate
from tests.waiting import HANG, SOON, until


class Held:
    """Holds the first batch until it is let go, and counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, let_go: Callable[[], bool]) -> None:
        self.batches, self.was_let_go = 0, False
        score = LinearModel.scores_and_unseen

        def held(model: LinearModel, rows: SparseRows) -> Any:
            self.batches += 1
            if self.batches == 1:
                until(let_go, HANG / 2)
                self.was_let_go = True
            return score(model, rows)

        monkeypatch.setattr(LinearModel, "scores_and_unseen", held)
        monkeypatch.setattr(scoring, "_BATCH_ROWS", 1)


@pytest.mark.usefixtures("version")
def test_an_evaluation_ends_when_its_client_disconnects(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next batch after it is known that the client has left; fails if that is never known."""

    def nobody_waits() -> bool:
        gone = requests._disconnected.get()
        return gone is not None and gone.is_set()

    body = {"dataset": gateway.upload(drawn(["no", "yes"], 1000))["id"]}
    small = gateway.upload([{"indices": [0], "label": "no"}])["id"]
    held = Held(monkeypatch, nobody_waits)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=HANG) as client:
        content = json.dumps(body)
        head = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        client.sendall(f"POST /v1/models/news/evaluate HTTP/1.1\r\n{head}{content}".encode())
        until(lambda: held.batches == 1)
    until(lambda: gateway.measured("halfmoon_scored_datasets") == 0)
    assert held.was_let_go
    assert evaluate(gateway, {"dataset": small})["accuracy"] == 1
    assert held.batches == 2


def test_so_many_evaluations_at_a_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = start(max_concurrent_scorings=1)
    publish(gateway.store)
    body = {"dataset": gateway.upload(drawn(["no", "yes"], 1000))["id"]}
    go_on = threading.Event()
    held = Held(monkeypatch, go_on.is_set)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(evaluate, gateway, body)
        until(lambda: held.batches > 0)
        answer = gateway.client.post("/v1/models/news/evaluate", json=body)
        assert problem_of(answer, 429)["type"] == "/problems/too-many"
        assert answer.headers["retry-after"]
        assert gateway.measured("halfmoon_scored_datasets") == 1
        assert evaluate(gateway, {"documents": [{"indices": [0], "label": "no"}]})["accuracy"] == 1
        assert not first.done()
        go_on.set()
        assert first.result()["labeled"] == 900
    assert gateway.measured("halfmoon_scored_datasets") == 0


def test_no_prediction_waits_for_an_evaluation_of_posted_documents(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = start(large_request_bytes=1)
    publish(gateway.store)
    entered, left, score = threading.Event(), threading.Event(), LinearModel.scores_and_unseen

    def held(model: LinearModel, rows: SparseRows) -> Any:
        if not entered.is_set():
            entered.set()
            left.wait(SOON)
        return score(model, rows)

    monkeypatch.setattr(LinearModel, "scores_and_unseen", held)
    documents = [{"indices": [0], "label": "no"}]
    with ThreadPoolExecutor(1) as thread:
        evaluation = thread.submit(evaluate, gateway, {"documents": documents})
        assert entered.wait(SOON)
        try:
            assert gateway.client.post("/v1/models/news/predict", json={"documents": documents}).json()["labels"] == [
                "no"
            ]
            assert not evaluation.done()
        finally:
            left.set()
        assert evaluation.result()["accuracy"] == 1
