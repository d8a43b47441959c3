"""Keeps child processes running: starts them, starts them again when they die, stops them all, and leaves none behind."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from core.errors import HalfmoonError

FIRST_DELAY = 0.25
"""seconds before a child that died is started again; doubles with every death in a row"""
LONGEST_DELAY = 2.0
"""seconds; no backoff waits longer: with what a worker takes to start, a job whose worker has died is to run again within ten"""
STEADY = 10.0
"""seconds a child must live for its earlier deaths to be forgotten"""

PR_SET_PDEATHSIG = 1


class CannotStart(HalfmoonError):
    """The service cannot be started as asked; the text says what to mend."""


@dataclass(frozen=True)
class Command:
    """What to run, and how to end it."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    inherited: Sequence[int] = ()
    """file descriptors that the child keeps open"""
    orphan_signal: signal.Signals = signal.SIGKILL
    """what the child gets when this process dies without stopping it (Linux)"""


@dataclass
class Child:
    """A command, its process if it lives, and how often it died in a row."""

    command: Command
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    deaths: int = 0
    due: float = field(default=0.0)
    """when it is to be started again, in monotonic seconds"""

    @property
    def alive(self) -> bool:
        """Whether the process runs, as far as was last seen."""
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Runs commands until told to stop. Use it from the main thread: Linux ties the life of a child to the thread that started it."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._children: dict[str, Child] = {}

    def start(self, command: Command) -> None:
        """Start a command that is from now on kept running."""
        child = self._children.setdefault(command.name, Child(command))
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
                self._spawn(child)
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
        command = child.command
        child.started = self._clock()
        child.process = subprocess.Popen(
            command.arguments,
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            pass_fds=command.inherited,
            start_new_session=True,  # Ctrl-C in a terminal reaches this process alone, which then stops the others in order
            preexec_fn=partial(die_with_parent, os.getpid(), command.orphan_signal),
        )

    def _bury(self, child: Child) -> None:
        assert child.process is not None
        child.deaths = 1 if self._clock() - child.started > STEADY else child.deaths + 1
        delay = min(FIRST_DELAY * 2 ** (child.deaths - 1), LONGEST_DELAY)
        child.due = self._clock() + delay
        self._say(f"{child.command.name} {ending(child.process.returncode)}; starting it again in {delay:g} s")
        child.process = None


def ending(code: int) -> str:
    """How a process ended, in words, from its return code."""
    return f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"


def die_with_parent(parent: int, number: int) -> None:
    """Have this process get signal ``number`` when ``parent`` dies (Linux; elsewhere nothing). Call it in the child, right after the fork."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call above
        os.kill(os.getpid(), number)
