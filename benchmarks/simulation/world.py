"""Actors that take turns by a seed: one runs at a time, and before each of its calls to the outside any other may go on.

A call may fail, lose its reply, come late, or be the last of its process. The same seed gives the same run, call by call.
"""

import threading
from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")
_CALL_SECONDS = 0.005
_LATE_SECONDS = 20.0
_STACK_BYTES = 256 << 10


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
    """A thread of a simulated process."""

    def __init__(self, process: str, act: Callable[[], None], wakes_at: float) -> None:
        self.process = process
        self.wakes_at = wakes_at
        self.ended = False
        self.turn = threading.Semaphore(0)
        self.error: BaseException | None = None
        self._act = act

    def run(self) -> None:
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
        self._back = threading.Semaphore(0)

    @property
    def calm(self) -> bool:
        """Whether no more faults come."""
        return self.now >= self._calm_from

    def spawn(self, process: str, act: Callable[[], None], after: float = 0.0) -> None:
        """Start a thread of a process."""
        actor = Actor(process, act, self.now + after)
        self._actors.append(actor)
        threading.Thread(target=self._live, args=(actor,), daemon=True).start()

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
        for fate, share in (CALM if self.calm else self._odds)._asdict().items():
            if draw < share:
                return fate
            draw -= share
        return ""

    def sleep(self, seconds: float) -> None:
        """Let others go on for so long, at least for a turn."""
        actor = self._current()
        actor.wakes_at = self.now + seconds
        self._back.release()
        actor.turn.acquire()
        self._check(actor)

    def kill(self, process: str) -> None:
        """End a process, which is that of the actor that runs, with all of its threads."""
        self._dead.add(process)
        self.on_death(process)
        raise Killed

    def _turn(self) -> None:
        alive = [actor for actor in self._actors if not actor.ended]
        ready = [actor for actor in alive if actor.wakes_at <= self.now or actor.process in self._dead]
        if not ready:
            self.now = min(actor.wakes_at for actor in alive)
            return
        actor = self.random.choice(ready)
        self._resume(actor)
        self._actors = [each for each in self._actors if not each.ended]
        self.now += self.random.expovariate(1 / _CALL_SECONDS)
        self.failure = self.failure or actor.error

    def _resume(self, actor: Actor) -> None:
        if not actor.ended:
            self._running = actor
            actor.turn.release()
            self._back.acquire()

    def _live(self, actor: Actor) -> None:
        actor.turn.acquire()
        if not self._over:
            actor.run()
        actor.ended = True
        self._back.release()

    def _current(self) -> Actor:
        assert self._running is not None
        self._check(self._running)
        return self._running

    def _check(self, actor: Actor) -> None:
        if self._over or actor.process in self._dead:
            raise Killed
