"""Workers of a cluster that are killed, as processes of their own: their results are computed again, with the bits of
memory.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client

from core.train import TrainingContext, train
from tests.core.digests import digest
from tests.waiting import SLOW, until
from tests.workers.cluster.conftest import engine_of
from tests.workers.cluster.test_engine import sparse, task_of
from workers.cluster import local, tasks
from workers.cluster.address import TlsFiles
from workers.cluster.engine import connected
from workers.cluster.local import CONFIG, local_cluster


@pytest.fixture(scope="module")
def client(tls: TlsFiles) -> Iterator[Client]:
    """Nobody is replaced for silence: on a busy machine a worker that begins has none to spare for its heartbeat.

    Dask by itself would give a worker up that does not come back at once.
    """
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 ms"}),
        dask.config.set(CONFIG),
    ):
        patch.setattr(local, "_SILENT_SECONDS", 600.0)
        with local_cluster("127.0.0.1", 0, 2, tls) as cluster, connected(cluster.scheduler_address, tls) as made:
            yield made


def killing(task: Callable[..., Any], due: Path) -> Callable[..., Any]:
    """The task; one of its calls kills its worker when there is this file."""

    def counted(*given: Any) -> Any:
        with suppress(FileNotFoundError):
            due.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return task(*given)

    return counted


@pytest.mark.usefixtures("small_parts")
def test_a_worker_may_be_killed_in_a_pass(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, due, asked = task_of(sparse(), "svm"), tmp_path / "due", list[object]()
    expected = digest(train(task, TrainingContext(threads=1)))
    monkeypatch.setattr("workers.cluster.tasks.product", killing(tasks.product, due))

    def observer(point: Any) -> bool:
        if point.iteration > 0 and not asked:
            due.touch()
            asked.append(point)
        return False

    assert (
        digest(train(task, TrainingContext(observer=observer, threads=1, engine=engine_of(client, tmp_path))))
        == expected
    )
    assert asked
    assert not due.exists()


def test_a_worker_that_was_killed_comes_back(client: Client) -> None:
    client.wait_for_workers(2, timeout=SLOW)
    before = set(client.run(os.getpid).values())
    os.kill(min(before), signal.SIGKILL)
    until(lambda: len(set(client.run(os.getpid, on_error="ignore").values()) - {min(before)}) == len(before), SLOW)
