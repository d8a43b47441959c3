"""Children are restarted after exponential back-off, stopped with a grace period, and none is left behind."""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import psutil
import pytest

from app.local.supervisor import (
    FIRST_BACKOFF_SECONDS,
    LONGEST_BACKOFF_SECONDS,
    STABLE_SECONDS,
    ForkedFunction,
    Process,
    Program,
    Supervisor,
    exit_in_words,
)
from tests.there import there
from tests.waiting import HANG, Clock, until

forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
"""Python 3.12 warns of forks of a process with threads, as that of the tests may have"""


def python(code: str, name: str = "child", signal_when_orphaned: signal.Signals = signal.SIGKILL) -> Program:
    return Program(name, [sys.executable, "-c", code], dict(os.environ), orphan_signal=signal_when_orphaned)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def supervisor(said: list[str], clock: Clock) -> Iterator[Supervisor]:
    made = Supervisor(said.append, clock)
    yield made
    made.stop(made.names(), 0.0)


def test_a_child_is_restarted_after_its_backoff(supervisor: Supervisor, clock: Clock, said: list[str]) -> None:
    supervisor.start(python("import time; time.sleep(60)"))
    first = there(supervisor.pid("child"))
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.exited() == ["child"])
    supervisor.poll()
    assert said == [f"child was killed by SIGKILL; restart in {FIRST_BACKOFF_SECONDS:g} s"]
    clock.now += FIRST_BACKOFF_SECONDS / 2
    supervisor.poll()
    assert supervisor.pid("child") is None
    clock.now += FIRST_BACKOFF_SECONDS
    supervisor.poll()
    assert supervisor.pid("child") not in (None, first)


def test_the_backoff_doubles_to_a_limit_and_begins_anew_for_a_stable_child(
    supervisor: Supervisor, clock: Clock, said: list[str]
) -> None:
    supervisor.start(python("raise SystemExit(3)"))
    for _ in range(8):
        until(lambda: supervisor.exited() == ["child"])
        supervisor.poll()
        clock.now += LONGEST_BACKOFF_SECONDS
        supervisor.poll()
    delays = [float(line.split(" in ")[1].split()[0]) for line in said]
    assert delays == [min(FIRST_BACKOFF_SECONDS * 2**n, LONGEST_BACKOFF_SECONDS) for n in range(8)]
    assert said[0].startswith("child exited with code 3;")
    clock.now += STABLE_SECONDS + 1
    until(lambda: supervisor.exited() == ["child"])
    supervisor.poll()
    assert said[-1].endswith(f"in {FIRST_BACKOFF_SECONDS:g} s")


def test_a_child_that_cannot_be_started_now_is_started_later(
    supervisor: Supervisor, clock: Clock, said: list[str]
) -> None:
    """A system without memory or room for another process must not end those that run."""
    short = True

    class Needy:
        name = "child"

        def start(self, replaces: int | None) -> Process:
            if short and replaces is not None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            return python("raise SystemExit(0)").start(replaces)

    supervisor.start(Needy())  # type: ignore[arg-type]
    until(lambda: supervisor.exited() == ["child"])
    for _ in range(3):
        supervisor.poll()
        clock.now += LONGEST_BACKOFF_SECONDS
    assert said[1:] == [
        f"child could not be started: {os.strerror(errno.EAGAIN)}; restart in {FIRST_BACKOFF_SECONDS * 2**n:g} s"
        for n in (1, 2)
    ]
    assert supervisor.pid("child") is None
    short = False
    supervisor.poll()
    until(lambda: supervisor.exited() == ["child"])
    supervisor.poll()
    assert said[-1].startswith("child exited with code 0;")


class Stillborn:
    """A process that has died when it is looked at."""

    name, pid = "child", 1

    def start(self, replaces: int | None) -> Self:
        return self

    def poll(self) -> int | None:
        return 1

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def wait(self) -> int:
        return 1


def test_a_child_may_die_any_number_of_times(supervisor: Supervisor, clock: Clock, said: list[str]) -> None:
    supervisor.start(Stillborn())  # type: ignore[arg-type]
    while len(said) < 1100:
        supervisor.poll()
        clock.now += LONGEST_BACKOFF_SECONDS
    assert said[-1].endswith(f"in {LONGEST_BACKOFF_SECONDS:g} s")


def test_stopping_asks_first(said: list[str], tmp_path: os.PathLike[str]) -> None:
    supervisor = Supervisor(said.append)
    trace = os.path.join(tmp_path, "asked")
    ready = os.path.join(tmp_path, "ready")
    hear = f"import signal, sys, time; signal.signal(15, lambda *_: (open({trace!r}, 'w').close(), sys.exit(0)))"
    code = f"{hear}; open({ready!r}, 'w').close(); time.sleep(60)"
    supervisor.start(python(code))
    until(lambda: os.path.exists(ready))
    supervisor.stop(["child"], HANG)
    assert os.path.exists(trace)
    assert supervisor.names() == []


def deaf(said: list[str], folder: os.PathLike[str]) -> Supervisor:
    """A supervisor of a child that ignores to be told to end."""
    ready = os.path.join(folder, "ready")
    supervisor = Supervisor(said.append)
    supervisor.start(
        python(f"import signal, time; signal.signal(15, signal.SIG_IGN); open({ready!r}, 'w').close(); time.sleep(60)")
    )
    until(lambda: os.path.exists(ready))
    return supervisor


def test_a_child_that_does_not_listen_is_killed(said: list[str], tmp_path: os.PathLike[str]) -> None:
    supervisor = deaf(said, tmp_path)
    pid = there(supervisor.pid("child"))
    supervisor.stop(["child"], 0.2)
    assert not psutil.pid_exists(pid)


def test_the_grace_period_can_be_cut_short(said: list[str], tmp_path: os.PathLike[str]) -> None:
    supervisor = deaf(said, tmp_path)
    asked: list[bool] = []

    def cut_short() -> bool:
        asked.append(True)
        return len(asked) > 2

    supervisor.stop(["child"], 10 * HANG, cut_short=cut_short)
    assert supervisor.names() == []
    assert len(asked) == 3


@forks
def test_a_fork_inherits_what_is_loaded_knows_which_process_it_replaces_and_receives_signals(
    supervisor: Supervisor, clock: Clock, said: list[str], tmp_path: Path
) -> None:
    loaded = ["by the parent"]
    told = tmp_path / "told"
    told.touch()

    def work(replaces: int | None) -> int:
        with told.open("a") as file:
            file.write(f"{os.getpid()} {replaces} {loaded}\n")
        signal.pause()
        return 0

    def lines() -> list[str]:
        return told.read_text().splitlines()

    supervisor.start(ForkedFunction("worker-7", work))
    first = there(supervisor.pid("worker-7"))
    until(lambda: len(lines()) == 1)
    assert psutil.Process(first).name() == "halfmoon-worker" or sys.platform != "linux"
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.exited() == ["worker-7"])
    supervisor.poll()
    assert said == [f"worker-7 was killed by SIGKILL; restart in {FIRST_BACKOFF_SECONDS:g} s"]
    clock.now += FIRST_BACKOFF_SECONDS
    supervisor.poll()
    until(lambda: len(lines()) == 2)
    second = supervisor.pid("worker-7")
    assert lines() == [f"{first} None {loaded}", f"{second} {first} {loaded}"]
    supervisor.stop(["worker-7"], 10.0)
    assert second is not None
    assert not psutil.pid_exists(second)


@forks
def test_a_signal_that_comes_while_a_fork_is_born_is_not_lost(supervisor: Supervisor) -> None:
    """It must not be taken by the handler that the child has of its parent."""
    heard: list[int] = []

    def pausing(replaces: int | None) -> int:
        signal.pause()
        return 0

    previous = signal.signal(signal.SIGTERM, lambda *_: heard.append(os.getpid()))
    try:
        supervisor.start(ForkedFunction("worker-1", pausing))
        pid = there(supervisor.pid("worker-1"))
        os.kill(pid, signal.SIGTERM)
        until(lambda: supervisor.exited() == ["worker-1"])
        supervisor.poll()
        assert heard == []
    finally:
        signal.signal(signal.SIGTERM, previous)


@forks
def test_a_fork_that_fails_says_why(supervisor: Supervisor, said: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    def work(replaces: int | None) -> int:
        raise ValueError("no store")

    supervisor.start(ForkedFunction("worker-1", work))
    until(lambda: supervisor.exited() == ["worker-1"])
    supervisor.poll()
    assert said[0].startswith("worker-1 exited with code 1;")
    assert "ValueError: no store" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("code", "words"), [(0, "exited with code 0"), (7, "exited with code 7"), (-9, "was killed by SIGKILL")]
)
def test_an_exit_is_described_in_words(code: int, words: str) -> None:
    assert exit_in_words(code) == words
