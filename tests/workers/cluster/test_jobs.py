"""A job of the service that a cluster shares: from the claim to the report, and while it waits for a cluster."""

import gc
import time
import weakref
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from storage.errors import ClusterUnavailable
from storage.records import JobState
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.stores import submit
from tests.workers.worker.attempts import with_settings
from workers.cluster.address import ClusterAddress, TlsFiles
from workers.cluster.engine import ClusterPasses
from workers.cluster.local import CONFIG, local_cluster
from workers.cluster.workforce import Waiting
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext


@pytest.mark.usefixtures("small_parts")
def test_a_job_is_shared_and_leaves_nothing_behind(
    context: WorkerContext, store: Store, cluster: LocalCluster, tmp_path: Path, tls: TlsFiles, id: str
) -> None:
    address = ClusterAddress(cluster.scheduler_address, tls, f"file://{tmp_path}/store")
    Attempts(with_settings(context._replace(cluster=address), engine="cluster")).run(id)
    job = Jobs(store).get(id)
    assert job.outcome is not None
    assert job.outcome.report is not None, job.outcome
    assert job.outcome.report["engine"] == "cluster"
    assert store.children(f"jobs/{id}/attempts/1/shards") == []


@pytest.mark.usefixtures("small_parts")
def test_a_job_whose_scheduler_ends_is_run_again_and_published_once(
    context: WorkerContext,
    store: Store,
    cluster: LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tls: TlsFiles,
) -> None:
    id, url, passes = submit(store), f"file://{tmp_path}/store", list[object]()
    context = with_settings(context, engine="cluster")
    with dask.config.set(CONFIG), local_cluster("127.0.0.1", 0, 1, tls, processes=False) as own:
        ask = ClusterPasses._ask

        def ended(*given: Any) -> Any:
            passes.append(given)
            if len(passes) == 3:
                own.close()
            return ask(*given)

        monkeypatch.setattr(ClusterPasses, "_ask", ended)
        with pytest.raises(ClusterUnavailable):
            Attempts(context._replace(cluster=ClusterAddress(own.scheduler_address, tls, url))).run(id)
    assert not Jobs(store).has_outcome(id)
    assert store.children(f"jobs/{id}/attempts/1/shards") == []
    context.reconciler().retry_now(id, 1)
    again = Attempts(context._replace(cluster=ClusterAddress(cluster.scheduler_address, tls, url)))
    again.run(id)
    again.run(id)  # a message that came twice
    job = Jobs(store).get(id)
    assert job.outcome is not None
    assert (job.outcome.state, job.outcome.attempt, job.attempt) == (JobState.SUCCEEDED, 2, 2)
    assert [version.job for version in Models(store).versions("news")] == [id]


def test_what_a_caller_had_in_hand_is_let_go_with_it(client: Client) -> None:
    """Not when garbage is collected: vectors of millions of rows would gather until then."""

    def asked() -> weakref.ref[object]:
        in_hand = np.zeros(1)
        assert Waiting(client, lambda: None).gathered([client.submit(time.sleep, 0.3)]) == [None]
        return weakref.ref(in_hand)

    gc.disable()
    try:
        assert asked()() is None
    finally:
        gc.enable()
