"""A real Valkey server, stores in a folder and in a bucket, and datasets, jobs and outcomes in them.

The fixtures belong to all tests.
"""

import hashlib
import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from redis import Redis
from structlog.testing import capture_logs

from app.local.valkey import find_binary, is_ready
from core.documents.kinds import Rows
from core.documents.rows import SparseRows
from core.problem import Status
from storage.names import new_id
from storage.queue.connection import connect
from storage.records import Dataset, Failure, JobDraft, JobState, Label, Outcome, Publication
from storage.repositories.datasets import Batch, Datasets
from storage.repositories.jobs import Jobs
from storage.store import Store, open_store
from tests.processes import Program
from tests.there import there
from tests.waiting import HANG, until


class Valkey(Program):
    """A Valkey server on a socket of its own; one that is ``lasting`` has its data again after it was killed."""

    def __init__(self, folder: Path, *, lasting: bool = False) -> None:
        self.socket = folder / "valkey.sock"
        command = [find_binary(), "--port", "0", "--unixsocket", str(self.socket), "--dir", str(folder)]
        command += ["--save", "", "--appendonly", "yes" if lasting else "no"]
        super().__init__(command, url=f"unix://{self.socket}")

    def start(self, **more: str) -> None:
        """Start it, and wait until it answers."""
        super().start(**more)
        until(lambda: is_ready(self.socket))


@pytest.fixture(scope="session")
def shared_valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    # a socket's path may have some hundred characters only
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("v")))
    with Valkey(folder) as server:
        yield server


@pytest.fixture
def valkey(shared_valkey: Valkey) -> Valkey:
    """The server, emptied."""
    with connect(shared_valkey.url, HANG) as client:
        client.flushall()
    return shared_valkey


@pytest.fixture
def redis(valkey: Valkey) -> Iterator[Redis]:
    with connect(valkey.url, HANG) as client:
        yield client


@pytest.fixture
def no_redis(tmp_path: Path) -> Iterator[Redis]:
    """A client of a server that does not run."""
    with connect(f"unix://{tmp_path}/nowhere.sock", 0.2) as client:
        yield client


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def s3_options(endpoint: str) -> dict[str, str]:
    return {"endpoint": endpoint, "region": "us-east-1", "access_key_id": "test", "secret_access_key": "test"}


@pytest.fixture(params=["folder", "s3"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return open_store(f"file://{tmp_path}/store")
    return make_s3(request.getfixturevalue("s3_endpoint"), tmp_path)


def make_s3(endpoint: str, tmp_path: Path, cache_bytes: int = 1 << 20) -> Store:
    import httpx

    bucket = f"b{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:20]}"
    httpx.put(f"{endpoint}/{bucket}", verify=False)
    options = s3_options(endpoint)
    return open_store(f"s3://{bucket}/some/prefix", tmp_path / "cache", cache_bytes=cache_bytes, options=options)


def sparse(given: Rows) -> SparseRows:
    """The rows, which must be vectors."""
    assert isinstance(given, SparseRows)
    return given


def rows(*documents: dict[int, float], n_features: int | None = None) -> SparseRows:
    """Rows from dictionaries, indices in the order given."""
    indices = [index for document in documents for index in document]
    values = [value for document in documents for value in document.values()]
    indptr = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    width = n_features if n_features is not None else max(indices, default=-1) + 1
    return SparseRows(indptr, np.array(indices, np.uint32), np.array(values, np.float32), width)


@contextmanager
def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    """So many seconds later, by the clock that nobody sets."""
    now = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr("storage.repositories.sightings.time", SimpleNamespace(monotonic=lambda: now + seconds))
        yield


@contextmanager
def killed_at(store: Store, monkeypatch: pytest.MonkeyPatch, call: str, ending: str) -> Iterator[None]:
    """The process is killed inside the block, before this call of the store with a key of this ending."""
    original = getattr(type(store), call)

    def killed(self: Store, key: str, *arguments: Any) -> Any:
        if key.endswith(ending):
            raise KeyboardInterrupt
        return original(self, key, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), call, killed)
        with pytest.raises(KeyboardInterrupt):
            yield


def two_clouds(n: int = 60, labeled: int = 6, seed: int = 0) -> Batch:
    """Documents of two classes that differ clearly, the first ``labeled`` of each with a label."""
    generator = np.random.default_rng(seed)
    documents: list[dict[int, float]] = []
    labels: list[Label | None] = []
    for position in range(n):
        kind = position % 2
        features = generator.choice(10, size=4, replace=False) + 10 * kind
        documents.append({int(index): float(generator.uniform(0.5, 1)) for index in sorted(features)} | {20: 0.1})
        labels.append(("no", "yes")[kind] if position < 2 * labeled else None)
    return Batch(rows(*documents, n_features=21), labels, [f"d{position}" for position in range(n)])


def make_dataset(store: Store, batches: Sequence[Batch] = ()) -> Dataset:
    with Datasets(store).builder() as builder:
        for batch in batches or [two_clouds()]:
            builder.add(batch)
        return builder.seal()


def submit(
    store: Store,
    *,
    dataset: str | None = None,
    model: str = "news",
    algorithm: str = "svm",
    options: dict[str, Any] | None = None,
    start: Publication | None = None,
    text: dict[str, int] | None = None,
) -> str:
    """The id of a new job, of a new dataset unless one is given."""
    dataset = dataset or make_dataset(store).id
    job, _ = Jobs(store).create(
        JobDraft(dataset=dataset, model=model, algorithm=algorithm, options=options or {}, text=text, start=start)
    )
    return job.request.id


@pytest.fixture(name="id")
def submitted(store: Store) -> str:
    """The id of a new job."""
    return submit(store)


def outcome_of(store: Store, id: str) -> Outcome:
    """The outcome of a job that has ended."""
    return there(Jobs(store).get(id).outcome)


def failure_of(store: Store, id: str) -> Failure:
    """The problem by which a job has failed, which has no model then."""
    outcome = outcome_of(store, id)
    assert outcome.state is JobState.FAILED
    assert "model" not in outcome.files
    return there(outcome.error)


def success(store: Store, attempt: int = 1, id: str | None = None) -> Outcome:
    """An outcome with stored files: of this attempt at a job, where its id is given."""
    files = {}
    for kind, content in (("model", os.urandom(9)), ("model_meta", b'{"classes": ["no", "yes"], "n_features": 21}')):
        path = store.staging() / kind
        path.write_bytes(content)
        key = f"files/{new_id('x')}" if id is None else f"jobs/{id}/attempts/{attempt}/{kind}"
        files[kind] = store.upload(key, path)
    return Outcome(
        state=JobState.SUCCEEDED,
        attempt=attempt,
        finished_at=datetime.now(UTC),
        status=Status.CONVERGED,
        objective=0.5,
        files=files,
    )


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """A limit on the size of files: to a process the same as a full disk. Logs, which tests print into a file, are
    caught meanwhile.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with capture_logs():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
