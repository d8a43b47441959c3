"""Actors that take turns by a seed: one runs at a time, and before each of its calls to the outside any other may go
on.

A call may fail, lose its reply, come late, or be the last of its process. The same seed gives the same run, call by
call.
"""

import gc
from bisect import insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from math import log
from random import Random
from typing import NamedTuple, TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")
_CALLS_A_SECOND = 200.0
_LATE_SECONDS = 20.0
_LULL_FACTOR = 10.0
_CLOCKS_OFF = (0.0, 0.0, 0.0, 0.0, -60.0, 60.0, -3600.0, 3600.0, -90_000.0, 90_000.0)
"""Seconds by which the clock of a process may be wrong."""


class Killed(BaseException):
    """The end of a process, wherever it is.

    No handler of errors sees it, and nothing that it does afterwards has an effect.
    """


class Odds(NamedTuple):
    """Probabilities of the fates of a call."""

    fails: float = 0.02
    loses_reply: float = 0.02
    is_late: float = 0.01
    kills: float = 0.01


CALM = Odds(0.0, 0.0, 0.0, 0.0)


class Actor:
    """A thread of a simulated process: a greenlet, since to switch to one costs a hundredth of a switch between threads
    of the system.
    """

    def __init__(self, birth: int, process: str, act: Callable[[], None]) -> None:
        self.birth = birth
        """Number of the actor, by age."""
        self.process = process
        self.error: BaseException | None = None
        self.greenlet = greenlet(self._run)
        self._act = act

    def __lt__(self, other: "Actor") -> bool:
        return self.birth < other.birth

    @property
    def ended(self) -> bool:
        """Whether it has no more turns."""
        return bool(self.greenlet.dead)

    def _run(self) -> None:
        """Act until the end of the actor or of its process."""
        try:
            self._act()
        except Killed:
            pass
        except BaseException as error:
            self.error = error


class World:
    """The clock, the actors and the faults of one run."""

    def __init__(self, seed: int, odds: Odds, storm_seconds: float) -> None:
        self.random = Random(seed)
        self._draw, self._draw_bits = self.random.random, self.random.getrandbits
        self.now = 1_000_000.0
        self.calls: list[tuple[float, str, str, str]] = []
        """What every call was: its time, process, name, and what became of it; "" if it went well."""
        self.on_death: Callable[[str], None] = lambda process: None
        self.failure: BaseException | None = None
        self._odds = odds
        self._clocks, self._clock_off = Random(f"{seed} clocks"), {"": 0.0}
        self._any_fate = sum(odds) + 1e-9
        """Chance that something happens to a call, rounded up."""
        self._calm_from = self.now + storm_seconds
        self._deadline = self.now
        self._finished: Callable[[], bool] = lambda: False
        self._born = 0
        self._ready: list[Actor] = []
        """Those who may go on, by age."""
        self._asleep: list[tuple[float, Actor]] = []
        """A heap of the others, with the time at which each wakes."""
        self._dead: set[str] = set()
        self._running: Actor | None = None
        self._over = False
        self._turns = getcurrent()

    @property
    def calm(self) -> bool:
        """Whether no more faults come."""
        return self.now >= self._calm_from

    @property
    def lull(self) -> bool:
        """Whether no late call is under way any more either: the remaining actors wait for their time, and may be
        checked less often.
        """
        return self.now >= self._calm_from + _LATE_SECONDS

    @property
    def wall(self) -> float:
        """The time by the clock of the process that runs, which may be wrong."""
        return self.wall_of(self.process)

    def wall_of(self, process: str) -> float:
        """The time by the clock of a process, or of Redis."""
        if process not in self._clock_off:
            self._clock_off[process] = self._clocks.choice(_CLOCKS_OFF)
        return self.now + self._clock_off[process]

    def set_clocks(self) -> None:
        """Set the clocks of all processes: each jumps to another time, ahead or back, or to the right one."""
        self._clock_off = {"": 0.0}

    @property
    def process(self) -> str:
        """The process of the actor that runs; empty if none does."""
        return "" if self._running is None else self._running.process

    @property
    def processes(self) -> list[str]:
        """The processes that have something to do, by age."""
        return list(dict.fromkeys(actor.process for actor in self._actors() if actor.process not in self._dead))

    def spawn(self, process: str, act: Callable[[], None], after: float = 0.0) -> None:
        """Start a thread of a process."""
        self._born += 1
        actor = Actor(self._born, process, act)
        actor.greenlet.parent = self._turns
        if after > 0.0:
            heappush(self._asleep, (self.now + after, actor))
        else:
            self._ready.append(actor)

    def run(self, finished: Callable[[], bool], seconds: float) -> bool:
        """Let the actors take turns until the world is calm and ``finished``.

        False if that takes longer than so many seconds of the clock, or an actor fails in a way that it does not
        expect: see ``failure``.
        """
        self._finished, self._deadline = finished, self.now + seconds
        try:
            while (actor := self._next()) is not None:
                self._resume(actor)
                self._bury()
            return self.failure is None and self.calm and finished()
        finally:
            self._over = True
            for actor in self._actors():
                if actor.greenlet:  # one that has begun
                    self._resume(actor)

    def call(self, what: str, effect: Callable[[], T], failure: Callable[[], Exception]) -> T:
        """A call to the outside."""
        actor = self._current()
        self._give_way(actor)
        draw = self._draw()
        if draw >= self._any_fate or self.now >= self._calm_from:
            self.calls.append((self.now, actor.process, what, ""))
            return effect()
        return self._strike(actor.process, self._fate(draw), what, effect, failure)

    def sleep(self, seconds: float) -> None:
        """Let others go on for so long, at least for a turn."""
        actor = self._current()
        if seconds > 0.0:
            self._ready.remove(actor)
            heappush(self._asleep, (self.now + seconds, actor))
        self._give_way(actor)

    def rest(self, seconds: float) -> None:
        """The pause of one that looks again and again."""
        self.sleep(_LULL_FACTOR * seconds if self.lull else seconds)

    def kill(self, process: str) -> None:
        """End the running actor's process, with all of its threads."""
        self.end(process)
        raise Killed

    def end(self, process: str) -> None:
        """End another process; it does nothing any more."""
        if process not in self._dead:
            self._dead.add(process)
            self._wake(process)
            self.on_death(process)

    def _strike(
        self, process: str, fate: str, what: str, effect: Callable[[], T], failure: Callable[[], Exception]
    ) -> T:
        """A call to which something happens."""
        if fate == "is_late":
            self.sleep(self.random.uniform(0.0, _LATE_SECONDS))
        early = fate == "kills" and self.random.random() < 0.5
        self.calls.append((self.now, process, what, fate))
        if early:
            self.kill(process)
        if fate == "fails":
            raise failure()
        result = effect()
        if fate == "kills":
            self.kill(process)
        if fate == "loses_reply":
            raise failure()
        return result

    def _fate(self, draw: float) -> str:
        """The fate of a call by a random number; empty if nothing happens."""
        for fate, share in zip(Odds._fields, self._odds, strict=True):
            if draw < share:
                return fate
            draw -= share
        return ""

    def _give_way(self, actor: Actor) -> None:
        """Let the next take its turn, which may be the same.

        Whoever gives up a turn looks for the next: that saves most switches.
        """
        self.now += self._pause()
        other = self._next()
        if other is not actor:
            self._running = other
            (self._turns if other is None else other.greenlet).switch()
        if self._over or actor.process in self._dead:
            raise Killed

    def _next(self) -> Actor | None:
        """The actor that is next; None if the run is over."""
        ready, asleep = self._ready, self._asleep
        while (
            self.now <= self._deadline and self.failure is None and (self.now < self._calm_from or not self._finished())
        ):
            while asleep and asleep[0][0] <= self.now:
                insort(ready, heappop(asleep)[1])
            count = len(ready)
            if count:
                # as Random.choice, in half of its time
                bits = count.bit_length()
                while (place := self._draw_bits(bits)) >= count:
                    pass
                return ready[place]
            self.now = asleep[0][0]
        return None

    def _pause(self) -> float:
        """Some milliseconds, distributed exponentially, as of Random.expovariate in half of its time."""
        return -log(1.0 - self._draw()) / _CALLS_A_SECOND

    def _bury(self) -> None:
        """After the end of an actor, or of the run."""
        actor = self._running
        if actor is not None and actor.ended:
            self._ready.remove(actor)
            self.now += self._pause()
            self.failure = self.failure or actor.error

    def _wake(self, process: str) -> None:
        """Let the threads of a process go on, to their end."""
        for entry in [each for each in self._asleep if each[1].process == process]:
            self._asleep.remove(entry)
            insort(self._ready, entry[1])
        heapify(self._asleep)

    def _actors(self) -> list[Actor]:
        """All that have not ended, by age."""
        return sorted([*self._ready, *(actor for _, actor in self._asleep)])

    def _resume(self, actor: Actor) -> None:
        self._running = actor
        actor.greenlet.switch()

    def _current(self) -> Actor:
        """The actor that runs, if it may."""
        actor = self._running
        assert actor is not None
        if self._over or actor.process in self._dead:
            raise Killed
        return actor


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: a run is short, and the collector would look at its calls again and again, a
    third of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
