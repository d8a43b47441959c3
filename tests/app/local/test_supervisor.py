"""Children are kept alive, with growing patience, and none is left behind."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.local.children import Command, Process, Work
from app.local.supervisor import FIRST_DELAY, LONGEST_DELAY, STEADY, Supervisor, ending
from tests.waiting import HANG, until

forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
"""Python 3.12 warns of forks of a process with threads, as that of the tests may have"""


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def python(code: str, name: str = "child", signal_when_orphaned: signal.Signals = signal.SIGKILL) -> Command:
    return Command(name, [sys.executable, "-c", code], dict(os.environ), orphan_signal=signal_when_orphaned)


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


def test_a_dead_child_is_started_again_after_its_delay(supervisor: Supervisor, clock: Clock, said: list[str]) -> None:
    supervisor.start(python("import time; time.sleep(60)"))
    first = supervisor.pid("child")
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.dead() == ["child"])
    supervisor.tend()
    assert said == [f"child was ended by SIGKILL; starting it again in {FIRST_DELAY:g} s"]
    clock.now += FIRST_DELAY / 2
    supervisor.tend()
    assert supervisor.pid("child") is None
    clock.now += FIRST_DELAY
    supervisor.tend()
    assert supervisor.pid("child") not in (None, first)


def test_the_delay_doubles_to_a_limit_and_is_forgotten_by_a_child_that_lives(supervisor: Supervisor, clock: Clock, said: list[str]) -> None:
    supervisor.start(python("raise SystemExit(3)"))
    for _ in range(8):
        until(lambda: supervisor.dead() == ["child"])
        supervisor.tend()
        clock.now += LONGEST_DELAY
        supervisor.tend()
    delays = [float(line.split(" in ")[1].split()[0]) for line in said]
    assert delays == [min(FIRST_DELAY * 2**n, LONGEST_DELAY) for n in range(8)]
    assert said[0].startswith("child ended with code 3;")
    clock.now += STEADY + 1
    until(lambda: supervisor.dead() == ["child"])
    supervisor.tend()
    assert said[-1].endswith(f"in {FIRST_DELAY:g} s")


def test_a_child_that_cannot_be_started_now_is_started_later(supervisor: Supervisor, clock: Clock, said: list[str]) -> None:
    """A system without memory or room for another process must not end those that run."""
    short = True

    class Needy:
        name = "child"

        def start(self, before: int | None) -> Process:
            if short and before is not None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            return python("raise SystemExit(0)").start(before)

    supervisor.start(Needy())
    until(lambda: supervisor.dead() == ["child"])
    for _ in range(3):
        supervisor.tend()
        clock.now += LONGEST_DELAY
    assert said[1:] == [f"child could not be started: {os.strerror(errno.EAGAIN)}; starting it again in {FIRST_DELAY * 2**n:g} s" for n in (1, 2)]
    assert supervisor.pid("child") is None
    short = False
    supervisor.tend()
    until(lambda: supervisor.dead() == ["child"])
    supervisor.tend()
    assert said[-1].startswith("child ended with code 0;")


class Stillborn:
    """What has died when it is looked at."""

    name, pid = "child", 1

    def start(self, before: int | None) -> Process:
        return self

    def poll(self) -> int | None:
        return 1

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def wait(self) -> int:
        return 1


def test_a_child_may_die_any_number_of_times(supervisor: Supervisor, clock: Clock, said: list[str]) -> None:
    supervisor.start(Stillborn())
    while len(said) < 1100:
        supervisor.tend()
        clock.now += LONGEST_DELAY
    assert said[-1].endswith(f"in {LONGEST_DELAY:g} s")


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


def test_a_child_that_does_not_listen_is_killed(said: list[str], tmp_path: os.PathLike[str]) -> None:
    ready = os.path.join(tmp_path, "ready")
    supervisor = Supervisor(said.append)
    supervisor.start(python(f"import signal, time; signal.signal(15, signal.SIG_IGN); open({ready!r}, 'w').close(); time.sleep(60)"))
    until(lambda: os.path.exists(ready))
    pid = supervisor.pid("child")
    assert pid is not None
    supervisor.stop(["child"], 0.2)
    assert not psutil.pid_exists(pid)


def test_a_hurry_ends_the_patience(said: list[str], tmp_path: os.PathLike[str]) -> None:
    ready = os.path.join(tmp_path, "ready")
    supervisor = Supervisor(said.append)
    supervisor.start(python(f"import signal, time; signal.signal(15, signal.SIG_IGN); open({ready!r}, 'w').close(); time.sleep(60)"))
    until(lambda: os.path.exists(ready))
    asked: list[bool] = []

    def hurry() -> bool:
        asked.append(True)
        return len(asked) > 2

    supervisor.stop(["child"], 10 * HANG, hurry=hurry)
    assert supervisor.names() == []
    assert len(asked) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_child_dies_with_a_killed_parent() -> None:
    code = """if True:
        import os, sys, time
        from app.local.children import Command
        from app.local.supervisor import Supervisor

        supervisor = Supervisor(print)
        supervisor.start(Command("child", [sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ)))
        print(supervisor.pid("child"), flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.kill()
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


@forks
def test_a_fork_takes_what_is_loaded_is_told_whom_it_replaces_and_hears_signals(
    supervisor: Supervisor, clock: Clock, said: list[str], tmp_path: Path
) -> None:
    loaded = ["before the fork"]
    told = tmp_path / "told"
    told.touch()

    def work(before: int | None) -> int:
        with told.open("a") as file:
            file.write(f"{os.getpid()} {before} {loaded}\n")
        signal.pause()
        return 0

    def lines() -> list[str]:
        return told.read_text().splitlines()

    supervisor.start(Work("worker-7", work))
    first = supervisor.pid("worker-7")
    assert first is not None
    until(lambda: len(lines()) == 1)
    assert psutil.Process(first).name() == "halfmoon-worker" or sys.platform != "linux"
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.dead() == ["worker-7"])
    supervisor.tend()
    assert said == [f"worker-7 was ended by SIGKILL; starting it again in {FIRST_DELAY:g} s"]
    clock.now += FIRST_DELAY
    supervisor.tend()
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

    def pausing(before: int | None) -> int:
        signal.pause()
        return 0

    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(os.getpid()))
    try:
        supervisor.start(Work("worker-1", pausing))
        pid = supervisor.pid("worker-1")
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        until(lambda: supervisor.dead() == ["worker-1"])
        supervisor.tend()
        assert heard == []
    finally:
        signal.signal(signal.SIGTERM, before)


@forks
def test_a_fork_that_fails_says_why(supervisor: Supervisor, said: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    def work(before: int | None) -> int:
        raise ValueError("no store")

    supervisor.start(Work("worker-1", work))
    until(lambda: supervisor.dead() == ["worker-1"])
    supervisor.tend()
    assert said[0].startswith("worker-1 ended with code 1;")
    assert "ValueError: no store" in capfd.readouterr().err


@pytest.mark.parametrize(("code", "words"), [(0, "ended with code 0"), (7, "ended with code 7"), (-9, "was ended by SIGKILL")])
def test_an_ending_is_told_in_words(code: int, words: str) -> None:
    assert ending(code) == words
