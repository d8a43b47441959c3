"""Acts that a worker lets a child process do."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from redis import ConnectionPool

from storage.errors import CannotStart, StoreUnavailable, Unavailable
from storage.process.settings import Settings
from storage.store import forks
from tests.stores import Valkey
from tests.waiting import HANG, SOON
from workers.worker.run import _context, _WorkerHeartbeat
from workers.worker.store_process import run_in_store_process


@pytest.fixture(autouse=True)
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test before has used a bucket."""
    monkeypatch.setattr(forks, "_user", None)


def test_the_work_is_done_by_another_process(tmp_path: Path) -> None:
    file = tmp_path / "process"

    def work() -> None:
        file.write_text(str(os.getpid()))

    run_in_store_process(work)
    assert int(file.read_text()) != os.getpid()


@pytest.mark.parametrize(("raised", "expected"), [(CannotStart, CannotStart), (StoreUnavailable, Unavailable)])
def test_what_is_wrong_is_raised_here(raised: type[Exception], expected: type[Exception]) -> None:
    def work() -> None:
        raise raised("the bucket is away")

    with pytest.raises(expected, match="the bucket is away"):
        run_in_store_process(work)


def test_a_child_that_dies_is_no_answer() -> None:
    with pytest.raises(Unavailable, match="without an answer"):
        run_in_store_process(lambda: os._exit(9))


def test_nothing_is_begun_that_would_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_user", os.getpid())
    with pytest.raises(forks.UsedBeforeFork):
        run_in_store_process(lambda: None)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of forks beside threads, which is what is tested
def test_the_work_does_not_wait_for_a_lock_that_the_heartbeat_held(
    valkey: Valkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(redis_url=valkey.url, store_url=f"file://{tmp_path}/store")
    context = _context(settings, "w")
    locked, release = threading.Event(), threading.Event()
    connection = ConnectionPool.make_connection

    def slow(pool: ConnectionPool) -> Any:  # the pool is locked meanwhile
        if threading.current_thread().name == "worker heartbeat":
            locked.set()
            assert release.wait(HANG)
        return connection(pool)

    def work() -> None:
        signal.alarm(int(SOON))
        context.redis_state.cancel_requested("job-1")

    monkeypatch.setattr(ConnectionPool, "make_connection", slow)
    with _WorkerHeartbeat(settings, "w"):
        assert locked.wait(SOON)
        run_in_store_process(work)
        release.set()
