"""A gateway under uvicorn, over HTTP, on a store of its own and a real Valkey server."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn
import uvloop
from safetensors.numpy import save_file

from app.http.sockets.connection import Connection
from app.main import create_app
from app.settings import GatewaySettings
from core.documents.kinds import TextRows
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import Names
from core.models.model import LinearModel, Model
from core.options.text import TextOptions
from core.problem import Status
from core.validation.calibration import Calibration
from core.validation.label_calibration import LabelCalibration
from storage.queue.connection import connect
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.records import JobDraft, JobState, Outcome, Version
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store, open_store
from tests.stores import Valkey, make_dataset
from tests.there import there
from tests.waiting import HANG, SOON

NDJSON = "application/x-ndjson"
EVENT_LOOP = "event loop"
"""name of the thread of a gateway that runs its event loop"""
_PATIENCE = 2.0
"""seconds that open requests have to end in when a gateway is stopped"""
TWO_CLASSES = [
    {"id": "a", "indices": [0, 2], "values": [1.0, 0.5], "label": "no"},
    {"id": "b", "indices": [1, 2], "values": [1.0, 0.25], "label": "yes"},
    {"id": "c", "indices": [1]},
]


@dataclass
class Gateway:
    """A running gateway: a client of it, and its stored data."""

    client: httpx.Client
    root: Path
    port: int

    @property
    def store(self) -> Store:
        return open_store(f"file://{self.root}")

    def measured(self, name: str) -> float:
        """The value of a metric without labels."""
        lines = self.client.get("/metrics").text.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def kept(self) -> list[str]:
        """Everything below the folders of the store, but the locks and folders of the staging area itself, and the
        record that the gateway stages every two seconds.
        """
        # os.walk bears with folders that vanish meanwhile
        found = [
            Path(folder, name).relative_to(self.root)
            for folder, folders, files in os.walk(self.root)
            for name in (*folders, *files)
        ]
        staged = {path for path in found if path.parts[0] == ".staging"}
        return sorted(
            str(path)
            for path in found
            if (len(path.parts) > 2 and not self._renews(path) if path in staged else len(path.parts) > 1)
        )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Nothing in the store is changed by the block."""
        before = self.kept()
        yield
        assert self.kept() == before

    def _renews(self, path: Path) -> bool:
        """Whether a file is the record of the queue on its way into the store, or has arrived there meanwhile."""
        try:
            return b'"beat":' in (self.root / path).read_bytes()
        except OSError:
            return True

    def upload(self, documents: list[dict[str, Any]], **query: str) -> dict[str, Any]:
        return created(self.client.post("/v1/datasets", json={"documents": documents}, params=query))

    def job(self, **fields: Any) -> httpx.Response:
        return self.client.post("/v1/jobs", json={"model": "news", "algorithm": "svm"} | fields)


class _Server(uvicorn.Server):
    """Stops at once. uvicorn polls ten times a second whether to stop and then waits a tenth, which adds up to minutes
    over hundreds of tests.

    ``settled``: it has started, or failed to.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop, self._stop_requested = uvloop.new_event_loop(), asyncio.Event()
        self.settled = threading.Event()

    def run_on_its_loop(self, listening: socket.socket) -> None:
        """On the event loop that gateways run on."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self.serve([listening]))
        finally:
            self.settled.set()

    def end(self) -> None:
        """Also of one that still starts, and ends then. One that has not started has closed its loop."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop_requested.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.settled.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stop_requested.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        state = self.server_state
        for server in self.servers:
            server.close()
        for connection in list(state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while state.connections or state.tasks:
                    await asyncio.sleep(0.002)
        for task in state.tasks:
            task.cancel()
        await self.lifespan.shutdown()


@contextmanager
def serving(settings: GatewaySettings) -> Iterator[int]:
    """The port of a gateway that runs in a thread.

    One that outlives the fixture ``valkey`` has a queue of its own: that empties Redis, and gateways of two stores
    would contend for the same.
    """
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    proxies = list(settings.trusted_proxies)
    config = uvicorn.Config(
        create_app(settings), http=Connection, log_config=None, access_log=False, forwarded_allow_ips=proxies
    )
    server = _Server(config)
    thread = threading.Thread(target=server.run_on_its_loop, args=(listening,), name=EVENT_LOOP)
    thread.start()
    try:
        assert server.settled.wait(SOON)
        assert server.started
        yield listening.getsockname()[1]
    finally:
        server.end()
        thread.join()
        listening.close()


Start = Callable[..., Gateway]


@pytest.fixture
def start(tmp_path: Path, valkey: Valkey) -> Iterator[Start]:
    """Starts gateways on one store; the arguments are settings."""
    with ExitStack() as stack:

        def start(**changes: Any) -> Gateway:
            root = tmp_path / "store"
            defaults: dict[str, Any] = {
                "store_url": f"file://{root}",
                "redis_url": valkey.url,
                "redis_timeout_seconds": HANG,
            }
            settings = GatewaySettings(**(defaults | changes))
            port = stack.enter_context(serving(settings))
            # to load the certificates of the world takes longer than most tests
            client = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG, verify=False))
            return Gateway(client, root, port)

        yield start


@pytest.fixture
def gateway(start: Start) -> Gateway:
    return start()


QUEUE = GatewaySettings().queue


@pytest.fixture
def redis_state(valkey: Valkey) -> Iterator[RedisState]:
    with connect(valkey.url, HANG) as redis:
        yield RedisState(redis, QUEUE)


@pytest.fixture
def queue(valkey: Valkey) -> Iterator[Queue]:
    with connect(valkey.url, HANG) as redis:
        yield Queue(redis, QUEUE)


@pytest.fixture
def dataset(gateway: Gateway) -> str:
    made: str = gateway.upload(TWO_CLASSES)["id"]
    return made


@pytest.fixture
def version(gateway: Gateway) -> Version:
    """The first version of the model "news"."""
    return publish(gateway.store)


@pytest.fixture
def unchanged(gateway: Gateway, version: Version) -> Iterator[None]:
    """The model "news" is served, and the test is to change nothing in the store."""
    with gateway.unchanged():
        yield


def publish(
    store: Store,
    name: str = "news",
    *,
    bias: float = 0.0,
    classes: Sequence[str | int] = ("no", "yes"),
    dataset: str | None = None,
    calibrated: bool = False,
    model: Model | None = None,
    left_out: Mapping[int, Sequence[float]] | None = None,
    annotations: int | None = None,
    lines: Sequence[dict[str, Any]] = ({"id": "c", "label": "yes", "score": 1.0, "probability": None},),
    **outcome: Any,
) -> Version:
    """A model as a succeeded job of a dataset leaves it; by default its k-th feature speaks for the k-th class.

    ``left_out``: probabilities of the labels that cross-validation left out, by position. ``lines``: the labels that it
    gave. ``outcome``: more of its
    outcome.
    """
    if model is None:
        n_columns = 1 if len(classes) == 2 else len(classes)
        weights = np.array([[-1.0], [1.0], [0.0]]) if n_columns == 1 else np.eye(n_columns)
        calibration = (
            Calibration(np.full(n_columns, 2.0), np.zeros(n_columns), np.ones(len(classes))) if calibrated else None
        )
        features = np.arange(len(weights), dtype=np.uint32)
        model = LinearModel(classes, len(weights), features, weights, np.full(n_columns, bias), calibration=calibration)
    jobs = Jobs(store)
    submitted = jobs.create(
        JobDraft(dataset=dataset or make_dataset(store).id, model=name, algorithm="svm", annotations=annotations)
    )[0]
    id = submitted.request.id
    folder = store.staging()
    arrays, meta = model.to_arrays()
    save_file(arrays, folder / "model")
    (folder / "model_meta").write_text(json.dumps(meta | {"facts": model.facts()}))
    point = {"phase": "mfn", "iteration": 1, "stage_objective": 0.5, "objective": None, "fraction": 1.0, "seconds": 0.1}
    (folder / "trace").write_text(json.dumps([point]))
    (folder / "labels").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if left_out is not None:
        arrays = {"positions": np.array(list(left_out)), "probabilities": np.array(list(left_out.values()), np.float32)}
        save_file(arrays, folder / "held_out")
    kinds = sorted(path.name for path in folder.iterdir())
    files = {kind: store.upload(f"jobs/{id}/attempts/1/{kind}", folder / kind) for kind in kinds}
    folder.rmdir()
    jobs.claim_attempt(id, "worker")
    fields = {"status": Status.CONVERGED, "objective": 0.5, "warnings": ["hm"], "files": files, **outcome}
    jobs.record_outcome(id, Outcome(state=JobState.SUCCEEDED, attempt=1, finished_at=datetime.now(UTC), **fields))
    version = there(jobs.publish(id))
    assert Models(store).version(name, version.number) == version
    return version


def body_of(answer: httpx.Response) -> dict[str, Any]:
    """The JSON of an answer of 200."""
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def all_of(client: socket.socket) -> bytes:
    """What comes until the connection ends."""
    parts = []
    while part := client.recv(65536):
        parts.append(part)
    return b"".join(parts)


def created(answer: httpx.Response) -> dict[str, Any]:
    """What an answer says that has created something."""
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def problem_of(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The problem that an answer is, its shape checked."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert set(problem) - {"errors"} == {"type", "title", "status", "detail"}
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    errors = problem.get("errors", [])
    assert len(errors) <= 20
    # what a person reads counts from 1, or quotes the id
    assert all(
        place in (f"document {id!r}", f"document number {int(id) + 1 if id.isdecimal() else 0}") if id else not place
        for place, id in ((error.pop("place", ""), error["document"]) for error in errors)
    )
    assert all(set(error) == {"document", "field", "detail"} for error in errors)
    return problem


def publish_several(store: Store, classes: Sequence[str | int]) -> Version:
    """A model of several labels, each of which a document has from the value 0.5 of its feature on."""
    n = len(classes)
    halves = LabelCalibration(np.full(n, 4.0), np.full(n, -2.0), np.full(n, 0.5))
    model = LinearModel(classes, n, np.arange(n, dtype=np.uint32), np.eye(n), np.zeros(n), calibration=halves)
    return publish(store, model=model, classes=classes, label_kind="several")


def text_model() -> LinearModel:
    terms = fit_terms(TextRows.of(["goal late", "vote late"]), TextOptions(min_documents=1), lambda done, held: None)
    columns = [terms.named(np.arange(5)).index(term) for term in ("goal", "vote")]
    weights = np.zeros((5, 1))
    weights[columns, 0] = 1.0, -1.0
    return LinearModel(["politics", "sport"], 5, np.arange(5, dtype=np.uint32), weights, np.zeros(1), vocabulary=terms)


def named_model() -> LinearModel:
    weights = np.array([[1.0], [-2.0]])
    return LinearModel(
        ["politics", "sport"],
        2,
        np.arange(2, dtype=np.uint32),
        weights,
        np.zeros(1),
        vocabulary=Names(["goal", "vote"]),
    )


def annotate(gateway: Gateway, dataset: str, *given: dict[str, Any]) -> dict[str, Any]:
    annotations = [
        {"id": f"{each.get('by', '')}-{each['document']}-{each.get('action', 'label')}", **each} for each in given
    ]
    return body_of(gateway.client.post(f"/v1/datasets/{dataset}/annotations", json={"annotations": annotations}))


def summary(gateway: Gateway, dataset: str) -> dict[str, Any]:
    found: dict[str, Any] = gateway.client.get(f"/v1/datasets/{dataset}/annotations/summary").json()
    return found


def suggest(gateway: Gateway, path: str = "news/suggest", **body: Any) -> dict[str, Any]:
    return body_of(gateway.client.post(f"/v1/models/{path}", json=body))


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}
