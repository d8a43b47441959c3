"""One cluster for all tests of a file: in this process, behind TCP, with four workers.

It ends with the file: while it runs, its threads draw from ``random``, which Hypothesis forbids to whatever runs beside
its tests.
"""

from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from core.engine.engine import Engine
from storage.store import open_store
from workers.cluster.address import NO_TLS
from workers.cluster.engine import ClusterEngine, ClusterStore, connected
from workers.cluster.local import CONFIG, local_cluster
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


def engine_of(client: Client, folder: Path) -> Engine:
    url = f"file://{folder}/store"
    return ClusterEngine(client, ScratchFiles(folder), ClusterStore(open_store(url), url, "jobs/x"))
