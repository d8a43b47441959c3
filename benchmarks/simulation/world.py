"""Actors that take turns by a seed: one runs at a time, and before each of its calls to the outside any other may go on.

A call may fail, lose its reply, come late, or be the last of its process. The same seed gives the same run, call by call.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")
_CALL_SECONDS = 0.005
_LATE_SECONDS = 20.0


class Killed(BaseException):
    """The end of a process, wherever it is. No handler of errors sees it, and nothing that it does afterwards has an effect."""


class Odds(NamedTuple):
    """Probabilities of what may happen to a call."""

    fails: float = 0.02
    loses_reply: float = 0.02
    is_late: float = 0.01
    kills: float = 0.01


CALM = Odds(0.0, 0.0, 0.0, 0.0)


class Actor:
    """A thread of a simulated process: a greenlet, since to switch to one costs a hundredth of a switch between threads of the system."""

    def __init__(self, process: str, act: Callable[[], None], wakes_at: float) -> None:
        self.process = process
        self.wakes_at = wakes_at
        self.error: BaseException | None = None
        self.greenlet = greenlet(self._run)
        self._act = act

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
        self.now = 1_000_000.0
        self.calls: list[str] = []
        """What every call was, and what became of it."""
        self.on_death: Callable[[str], None] = lambda process: None
        self.failure: BaseException | None = None
        self._odds = odds
        self._calm_from = self.now + storm_seconds
        self._actors: list[Actor] = []
        self._dead: set[str] = set()
        self._running: Actor | None = None
        self._over = False
        self._turns = getcurrent()

    @property
    def calm(self) -> bool:
        """Whether no more faults come."""
        return self.now >= self._calm_from

    @property
    def process(self) -> str:
        """The process of the actor that runs; empty if none does."""
        return "" if self._running is None else self._running.process

    @property
    def processes(self) -> list[str]:
        """The processes that have something to do, by age."""
        return list(dict.fromkeys(actor.process for actor in self._actors if actor.process not in self._dead))

    def spawn(self, process: str, act: Callable[[], None], after: float = 0.0) -> None:
        """Start a thread of a process."""
        actor = Actor(process, act, self.now + after)
        actor.greenlet.parent = self._turns
        self._actors.append(actor)

    def run(self, finished: Callable[[], bool], seconds: float) -> bool:
        """Let the actors take turns until the world is calm and ``finished``.

        False if that takes longer than so many seconds of the clock, or an actor fails in a way that it does not expect: see ``failure``.
        """
        deadline = self.now + seconds
        try:
            while not (self.calm and finished()):
                if self.now > deadline or self.failure is not None:
                    return False
                self._turn()
            return True
        finally:
            self._over = True
            for actor in self._actors:
                if actor.greenlet:  # one that has begun
                    self._resume(actor)

    def call(self, what: str, effect: Callable[[], T], failure: Callable[[], Exception]) -> T:
        """A call to the outside."""
        self.sleep(0.0)
        fate = self._fate()
        if fate == "is_late":
            self.sleep(self.random.uniform(0.0, _LATE_SECONDS))
        process = self._current().process
        early = fate == "kills" and self.random.random() < 0.5
        self.calls.append(f"{self.now:.3f} {process} {what} {fate}")
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

    def _fate(self) -> str:
        """What happens to a call; empty if nothing does."""
        draw = self.random.random()
        if not self.calm:
            for fate, share in zip(Odds._fields, self._odds, strict=True):
                if draw < share:
                    return fate
                draw -= share
        return ""

    def sleep(self, seconds: float) -> None:
        """Let others go on for so long, at least for a turn."""
        actor = self._current()
        actor.wakes_at = self.now + seconds
        self._turns.switch()
        self._check(actor)

    def kill(self, process: str) -> None:
        """End a process, which is that of the actor that runs, with all of its threads."""
        self.end(process)
        raise Killed

    def end(self, process: str) -> None:
        """End another process; it does nothing any more."""
        if process not in self._dead:
            self._dead.add(process)
            self.on_death(process)

    def _turn(self) -> None:
        alive = self._actors
        ready = [actor for actor in alive if actor.wakes_at <= self.now or actor.process in self._dead]
        if not ready:
            self.now = min(actor.wakes_at for actor in alive)
            return
        actor = self.random.choice(ready)
        self._resume(actor)
        if actor.ended:
            self._actors.remove(actor)
        self.now += self.random.expovariate(1 / _CALL_SECONDS)
        self.failure = self.failure or actor.error

    def _resume(self, actor: Actor) -> None:
        self._running = actor
        actor.greenlet.switch()

    def _current(self) -> Actor:
        assert self._running is not None
        self._check(self._running)
        return self._running

    def _check(self, actor: Actor) -> None:
        if self._over or actor.process in self._dead:
            raise Killed
