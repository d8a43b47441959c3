"""One cluster for all tests of a file: in this process, behind TCP, with four workers.

It ends with the file: while it runs, its threads draw from ``random``, which Hypothesis forbids to whatever runs beside its tests.
"""

from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from core.documents.kinds import TextRows
from core.engine.engine import Engine
from tests.core.documents.text.test_tfidf import collection
from workers.cluster.address import NO_TLS
from workers.cluster.engine import ClusterEngine, ClusterStore, connected
from workers.cluster.local import CONFIG, local_cluster
from workers.store import open_store
from workers.worker.scratch import ScratchFiles


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with dask.config.set(CONFIG), local_cluster("127.0.0.1", 0, 4, processes=False) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with connected(cluster.scheduler_address, NO_TLS) as made:
        yield made


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows have parts, and go to the cluster."""
    monkeypatch.setattr("core.engine.parts._PART_NONZEROS", 200)
    monkeypatch.setattr("core.engine.passes._SERIAL", 100)
    monkeypatch.setattr("workers.cluster.engine._LEAST_NONZEROS", 0)


@pytest.fixture
def small_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few texts have parts and buckets, and parts have several runs."""
    n_bytes = len(TextRows.of(collection()).data)
    monkeypatch.setattr("workers.cluster.counter._PART_BYTES", n_bytes // 6)
    monkeypatch.setattr("workers.cluster.counter._BUCKET_BYTES", n_bytes // 3)
    monkeypatch.setattr("workers.cluster.texts._TABLES", 0)
    monkeypatch.setattr("core.documents.text.batches.SPAN_ROWS", 20)


def engine_of(client: Client, folder: Path) -> Engine:
    url = f"file://{folder}/store"
    return ClusterEngine(client, ScratchFiles(folder), ClusterStore(open_store(url), url, "jobs/x"))


def texts_in(folder: Path, url: str = "") -> ClusterStore:
    own = f"file://{folder}/store"
    return ClusterStore(open_store(own), url or own, "jobs/x/texts")
