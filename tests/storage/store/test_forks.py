"""A process that uses a bucket must not fork children that use it."""

import os
from collections.abc import Callable

import pytest

from storage.store import forks


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
