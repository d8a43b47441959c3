"""Keeps child processes running: starts them, starts them again when they die, stops them all, and leaves none behind."""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.local.children import Process, Runnable

FIRST_DELAY = 0.25
"""seconds before a child that died is started again; doubles with every death in a row"""
LONGEST_DELAY = 2.0
"""seconds; no backoff waits longer: a job whose worker has died is to run again within ten"""
STEADY = 10.0
"""seconds a child must live for its earlier deaths to be forgotten"""


@dataclass
class Child:
    """What is kept running, its process if it lives, and how long it waits after a death."""

    runnable: Runnable
    process: Process | None = None
    before: int | None = None
    """the process that was last known to be dead"""
    started: float = 0.0
    delay: float = 0.0
    """seconds that it was last kept waiting; 0 before its first death"""
    due: float = 0.0
    """when it is to be started again, in monotonic seconds"""

    @property
    def alive(self) -> bool:
        """Whether the process runs, as far as was last seen."""
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Keeps things running until told to stop. Use it from the main thread: Linux ties the life of a child to the thread that started it."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._children: dict[str, Child] = {}

    def start(self, runnable: Runnable) -> None:
        """Start what is from now on kept running."""
        child = self._children.setdefault(runnable.name, Child(runnable))
        self._spawn(child)

    def pid(self, name: str) -> int | None:
        """Process id of a child, or None while it is dead."""
        child = self._children[name]
        return child.process.pid if child.process is not None and child.alive else None

    def dead(self) -> list[str]:
        """Names of the children that do not run now."""
        return [name for name, child in self._children.items() if not child.alive]

    def tend(self) -> None:
        """One round: note who died, and start again those whose delay is over. Call it a few times a second."""
        for child in self._children.values():
            if child.process is None and self._clock() >= child.due:
                self._revive(child)
            elif child.process is not None and child.process.poll() is not None:
                self._bury(child)

    def stop(self, names: Sequence[str], patience: float, hurry: Callable[[], bool] = lambda: False) -> None:
        """Ask these children to end, and kill those that still live after ``patience`` seconds in all, or once ``hurry`` says so."""
        children = [self._children.pop(name) for name in names if name in self._children]
        processes = [child.process for child in children if child.process is not None]
        for process in processes:
            process.terminate()
        deadline = self._clock() + patience
        while any(process.poll() is None for process in processes) and self._clock() < deadline and not hurry():
            time.sleep(0.02)
        for process in processes:
            process.kill()
            process.wait()

    def names(self) -> list[str]:
        """Names of all children, in the order in which they were first started."""
        return list(self._children)

    def _spawn(self, child: Child) -> None:
        child.started = self._clock()
        child.process = child.runnable.start(child.before)

    def _revive(self, child: Child) -> None:
        try:
            self._spawn(child)
        except OSError as error:  # no memory, or no process more, just now
            self._put_off(child, f"could not be started: {error.strerror or error}")

    def _bury(self, child: Child) -> None:
        assert child.process is not None
        code = child.process.wait()
        child.before, child.process = child.process.pid, None
        self._put_off(child, ending(code))

    def _put_off(self, child: Child, what: str) -> None:
        steady = self._clock() - child.started > STEADY
        child.delay = FIRST_DELAY if steady or not child.delay else min(2 * child.delay, LONGEST_DELAY)
        child.due = self._clock() + child.delay
        self._say(f"{child.runnable.name} {what}; starting it again in {child.delay:g} s")


def ending(code: int) -> str:
    """How a process ended, in words, from its return code."""
    return f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
