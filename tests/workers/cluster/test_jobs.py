"""A job of the service that a cluster shares: from the claim to the report."""

from pathlib import Path

import pytest
from distributed import LocalCluster

from tests.workers.conftest import submit
from workers.cluster.address import NO_TLS, ClusterAddress
from workers.repositories.jobs import Jobs
from workers.store import Store
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext


@pytest.mark.usefixtures("small_parts")
def test_a_job_is_shared_and_leaves_nothing_behind(context: WorkerContext, store: Store, cluster: LocalCluster, tmp_path: Path) -> None:
    address = ClusterAddress(cluster.scheduler_address, NO_TLS, f"file://{tmp_path}/store")
    id = submit(store)
    Attempts(context._replace(engine="cluster", cluster=address)).run(id)
    job = Jobs(store).get(id)
    assert job.outcome is not None
    assert job.outcome.report is not None, job.outcome
    assert job.outcome.report["engine"] == "cluster"
    assert store.children(f"jobs/{id}/attempts/1/shards") == []
