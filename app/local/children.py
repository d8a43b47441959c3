"""What a supervisor keeps running, and how it is started: a program, or a function in a fork."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from workers.process import die_with_parent, set_process_name


class Process(Protocol):
    """A running child, as ``subprocess.Popen`` has it."""

    @property
    def pid(self) -> int:
        """Process id."""

    def poll(self) -> int | None:
        """The return code, negative for a signal; None while it runs."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""

    def wait(self) -> int:
        """The return code, once it has ended."""


class Runnable(Protocol):
    """What is kept running."""

    @property
    def name(self) -> str:
        """By which it is told of."""

    def start(self, before: int | None) -> Process:
        """Start it, ``before`` being the process whose place it takes: one that has died."""


@dataclass(frozen=True)
class Command:
    """A program to run, and how to end it."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    inherited: Sequence[int] = ()
    """file descriptors that the child keeps open"""
    orphan_signal: signal.Signals = signal.SIGKILL
    """what the child gets when this process dies without stopping it (Linux)"""

    def start(self, before: int | None) -> Process:
        """Start the program."""
        return subprocess.Popen(
            self.arguments,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            pass_fds=self.inherited,
            start_new_session=True,  # Ctrl-C in a terminal reaches this process alone, which then stops the others in order
            preexec_fn=partial(die_with_parent, os.getpid(), self.orphan_signal),
        )


@dataclass(frozen=True)
class Work:
    """A function to run in a fork of this process: what is loaded here is loaded there, so that it starts within milliseconds."""

    name: str
    call: Callable[[int | None], int]
    """is told which process it takes the place of; its result is the exit code"""

    def start(self, before: int | None) -> Process:
        """Fork."""
        return Fork(self, before)


class Fork:
    """A child that runs a function. It hears no signal before it has taken leave of what its parent does on signals."""

    def __init__(self, work: Work, before: int | None) -> None:
        self._process = multiprocessing.get_context("fork").Process(target=_born, args=(work, before, os.getpid()), name=work.name)
        with _signals_held():
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """See ``Process``, as of all methods."""
        return self._process.exitcode

    def terminate(self) -> None:  # noqa: D102
        self._process.terminate()

    def kill(self) -> None:  # noqa: D102
        self._process.kill()

    def wait(self) -> int:  # noqa: D102
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


_HEARD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Signals wait for the end of the block; in a child that was forked inside it they wait until it lets them come."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _born(work: Work, before: int | None, parent: int) -> None:
    """The life of a fork."""
    for number in _HEARD:
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    die_with_parent(parent)
    set_process_name(f"halfmoon-{work.name.partition('-')[0]}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
    sys.exit(work.call(before))
