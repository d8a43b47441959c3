"""Clients of the serving storm: predictions at fixed moments, and jobs that are posted and followed to their end."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_JSON = {"Content-Type": "application/json"}
_TIMEOUT_SECONDS = 60.0
FINAL = ("succeeded", "failed", "cancelled")


class Prediction(NamedTuple):
    """A prediction and its answer; times by ``time.monotonic``."""

    due: float
    began: float
    ended: float
    status: int | None
    """None where no answer came"""
    version: int | None = None


class Caller:
    """One kept-alive connection, made anew when the server has closed it after an answer.

    A request is sent once: nothing is repeated.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_SECONDS)

    def call(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int | None, bytes]:
        """Status and body of the answer; None if none came."""
        try:
            self._connection.request(method, path, body, headers or _JSON)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return None, b""

    def json(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        """The answer of a call that must succeed; repeated for a while, since this is the clerk's own and is not
        measured.
        """
        content = None if body is None else json.dumps(body).encode()
        for _ in range(20):
            status, text = self.call(method, path, content, {**_JSON, **(headers or {})})
            if status is not None and status < 300:
                return json.loads(text)
            time.sleep(0.2)
        raise RuntimeError(f"{method} {path}: {status} {text[:300]!r}")

    def close(self) -> None:
        self._connection.close()


class Load:
    """Predictions at a rate, whatever the service does: one that must wait for its connection counts from when it was
    due.
    """

    def __init__(self, url: str, path: str, body: bytes, rate: float, connections: int) -> None:
        self._url, self._path, self._body, self._rate, self._connections = url, path, body, rate, connections
        self._done = threading.Event()
        self.predictions: list[Prediction] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send predictions inside the block."""
        begin = time.monotonic() + 0.2
        with ThreadPoolExecutor(self._connections) as pool:
            sending = [pool.submit(self._send, begin, number) for number in range(self._connections)]
            try:
                yield
            finally:
                self._done.set()
            for each in sending:
                each.result()

    def _send(self, begin: float, number: int) -> None:
        caller, turn = Caller(self._url), number
        while not self._done.is_set():
            due = begin + turn / self._rate
            time.sleep(max(0.0, due - time.monotonic()))
            began = time.monotonic()
            status, text = caller.call("POST", self._path, self._body)
            version = json.loads(text)["version"] if status == 200 else None
            self.predictions.append(Prediction(due, began, time.monotonic(), status, version))
            turn += self._connections
        caller.close()


class Posted:
    """Jobs that were posted, one after the other, each with an idempotency key; a post without an answer is repeated
    with its key.
    """

    def __init__(self, url: str, dataset: str, models: Sequence[str]) -> None:
        self._caller, self._dataset, self._models = Caller(url), dataset, models
        self.jobs: dict[str, str] = {}
        """jobs by their keys"""

    def post(self, number: int) -> None:
        """Post one job."""
        body = {
            "dataset": self._dataset,
            "model": self._models[number % len(self._models)],
            "algorithm": "svm",
            "seed": number,
            "publish": "always",
        }
        key = f"storm-{number}"
        self.jobs[key] = self._caller.json("POST", "/v1/jobs", body, {"Idempotency-Key": key})["id"]

    def states(self) -> dict[str, str]:
        """State of every job that was posted."""
        return {job: self._caller.json("GET", f"/v1/jobs/{job}")["state"] for job in self.jobs.values()}

    def versions(self) -> dict[str, list[str]]:
        """Jobs of the versions of each model, in the order of their numbers."""
        found: dict[str, list[str]] = {}
        for model in self._models:
            versions = self._caller.json("GET", f"/v1/models/{model}")["versions"]
            found[model] = [version["job"] for version in sorted(versions, key=lambda each: each["version"])]
        return found
