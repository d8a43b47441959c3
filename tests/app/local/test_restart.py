"""Gateways are replaced one after the other; one that is not ready in time replaces nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.local.restart import READY_SECONDS, RestartRequests, request_restart, rolling_restart
from app.local.supervisor import Supervisor
from storage.errors import CannotStart
from tests.there import there

GRACE = 15.0


class Body:
    """A process that fares as the test says."""

    def __init__(self, pid: int, events: list[str]) -> None:
        self.pid, self.exit_code, self._events = pid, None, events
        self.deaf = False

    exit_code: int | None

    def poll(self) -> int | None:
        return self.exit_code

    def terminate(self) -> None:
        self._events.append(f"stop {self.pid}")
        self.exit_code = None if self.deaf else 0

    def kill(self) -> None:
        if self.exit_code is None:
            self._events.append(f"kill {self.pid}")
            self.exit_code = -9

    def wait(self) -> int:
        return there(self.exit_code)


class Spec:
    """A child with processes that are numbered by a hundred."""

    def __init__(self, name: str, base: int, events: list[str]) -> None:
        self.name, self.bodies, self._base, self._events = name, list[Body](), base, events

    def start(self, replaces: int | None) -> Body:
        self.bodies.append(Body(self._base + len(self.bodies), self._events))
        self._events.append(f"start {self.bodies[-1].pid}")
        return self.bodies[-1]


class World:
    """Two children under a supervisor, with a clock and with processes that are ready when the test says so."""

    def __init__(self) -> None:
        self.now, self.events, self.ready = 0.0, list[str](), set[int]()
        self.supervisor = Supervisor(self.events.append, lambda: self.now)
        self.specs = [Spec("a", 100, self.events), Spec("b", 200, self.events)]
        for spec in self.specs:
            self.supervisor.start(spec)  # type: ignore[arg-type]
        self.events.clear()

    def restart(self) -> Iterator[str]:
        def missing(pid: int) -> str | None:
            return None if pid in self.ready else "the store cannot be written"

        return rolling_restart(self.supervisor, ["a", "b"], missing, GRACE, lambda: self.now)

    def pids(self) -> list[int | None]:
        return [self.supervisor.pid(spec.name) for spec in self.specs]


def test_each_is_replaced_when_the_new_one_is_ready_and_the_next_when_the_old_one_has_ended() -> None:
    world = World()
    steps = world.restart()
    world.specs[0].bodies[0].deaf = True
    assert [next(steps) for _ in range(3)] == [""] * 3
    assert (world.events, world.pids()) == (["start 101"], [100, 200])
    world.ready = {101, 201}
    next(steps)
    assert (world.events[1:], world.pids()) == (["stop 100"], [101, 200])
    next(steps)
    assert len(world.events) == 2  # the old one answers what it has
    world.specs[0].bodies[0].exit_code = 0
    assert list(steps) == ["replaced a, b"]
    assert (world.events[2:], world.pids()) == (["start 201", "stop 200"], [101, 201])
    world.supervisor.poll()
    assert world.pids() == [101, 201]


def test_an_old_one_that_does_not_end_is_killed_after_its_grace_period() -> None:
    world = World()
    steps = world.restart()
    world.ready, world.specs[0].bodies[0].deaf = {101, 201}, True
    next(steps)
    world.now += GRACE + 1
    assert list(steps) == ["replaced a, b"]
    assert world.events == ["start 101", "stop 100", "kill 100", "start 201", "stop 200"]


@pytest.mark.parametrize("dies", [True, False])
def test_a_new_one_that_does_not_become_ready_replaces_nothing(dies: bool) -> None:
    world = World()
    steps = world.restart()
    next(steps)
    if dies:
        world.specs[0].bodies[1].exit_code = 1
    else:
        world.now += READY_SECONDS + 1
    (how,) = steps
    assert ("has ended" if dies else "not ready within 60 s: the store cannot be written") in how
    assert how.startswith("a was not replaced, nor what comes after it")
    assert world.pids() == [100, 200]
    assert world.events == (["start 101"] if dies else ["start 101", "kill 101"])


def test_a_stop_in_the_midst_leaves_no_process() -> None:
    world = World()
    next(world.restart())
    world.supervisor.stop(["a", "b"], 0.0)
    assert sorted(event for event in world.events if event.startswith("stop")) == ["stop 100", "stop 101", "stop 200"]


def test_requests_during_a_restart_lead_to_one_more(tmp_path: Path) -> None:
    requests = RestartRequests(tmp_path)
    assert not requests.take()
    for _ in range(3):
        requests(10, None)
    assert requests.take()
    assert not requests.take()


def test_the_command_says_that_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no halfmoon runs on the data folder"):
        request_restart(tmp_path)
    (tmp_path / "lock").write_text(str(os.getpid()))  # of one that has ended: nobody holds the lock
    with pytest.raises(CannotStart, match="no halfmoon runs on the data folder"):
        request_restart(tmp_path)
