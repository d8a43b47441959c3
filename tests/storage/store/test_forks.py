"""A process that uses a bucket must not fork children that use it; a worker lets the store process ask in its place."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import ConnectionPool

from storage.errors import CannotStart, StoreUnavailable, Unavailable
from storage.process.settings import Settings
from storage.store import forks
from storage.store.forks import run_in_store_process
from tests.calls import meanwhile
from tests.stores import Valkey
from tests.waiting import HANG, SOON
from workers.worker.run import _context, _WorkerHeartbeat


@pytest.fixture(autouse=True)
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test before has used a bucket."""
    monkeypatch.setattr(forks, "_user", None)


def test_who_has_used_a_bucket_must_not_fork() -> None:
    forks.check_fork()
    forks.note_use()
    forks.note_use()
    with pytest.raises(forks.UsedBeforeFork, match=f"process {os.getpid()} has used a bucket"):
        forks.check_fork()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # other tests may have left threads
def test_a_fork_of_who_has_used_a_bucket_fails_instead_of_waiting() -> None:
    assert in_a_fork(forks.note_use) == 0
    forks.note_use()
    assert in_a_fork(forks.note_use) == 1


def in_a_fork(work: Callable[[], None]) -> int:
    """Exit code of a fork that does the work: 1 where it is refused."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except forks.UsedBeforeFork:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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

    def hold() -> None:  # the pool is locked meanwhile
        locked.set()
        assert release.wait(HANG)

    def work() -> None:
        signal.alarm(int(SOON))
        context.redis_state.cancel_requested("job-1")

    beats = "worker heartbeat"
    meanwhile(
        monkeypatch, ConnectionPool, "make_connection", hold, where=lambda _: threading.current_thread().name == beats
    )
    with _WorkerHeartbeat(settings, "w"):
        assert locked.wait(SOON)
        run_in_store_process(work)
        release.set()
