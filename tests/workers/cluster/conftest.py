"""One cluster for all tests of a file: in this process, behind TLS, with four workers.

It ends with the file: while it runs, its threads draw from ``random``, which Hypothesis forbids to whatever runs beside
its tests.
"""

from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from core.engine.passes import Engine
from storage.store import open_store
from workers.cluster.address import TlsFiles, throw_away_files
from workers.cluster.engine import ClusterEngine, ClusterStore, connected
from workers.cluster.local import CONFIG, local_cluster
from workers.worker.training_inputs import ScratchFiles


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """Files of an authority for these tests."""
    return throw_away_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def cluster(tls: TlsFiles) -> Iterator[LocalCluster]:
    with dask.config.set(CONFIG), local_cluster("127.0.0.1", 0, 4, tls, processes=False) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster: LocalCluster, tls: TlsFiles) -> Iterator[Client]:
    with connected(cluster.scheduler_address, tls) as made:
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
