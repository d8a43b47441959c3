"""Child processes of the supervisor: programs that are executed, and functions that run in a fork."""

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

from storage.process.system import die_with_parent, set_process_name


class Process(Protocol):
    """A running child process, with the interface of ``subprocess.Popen``."""

    @property
    def pid(self) -> int:
        """Process id."""

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def wait(self) -> int:
        """Wait for the exit, and return the exit code."""


class ChildSpec(Protocol):
    """Description of a child, by which the supervisor starts it, and starts it again after an exit."""

    @property
    def name(self) -> str:
        """Name of the child in messages."""

    def start(self, replaces: int | None) -> Process:
        """Start a process. ``replaces`` is the id of the dead process that it follows; None at the first start."""


@dataclass(frozen=True)
class Program:
    """A child that executes a program."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    inherited: Sequence[int] = ()
    """file descriptors that stay open in the child"""
    orphan_signal: signal.Signals = signal.SIGKILL
    """signal that the child receives when the supervisor dies without stopping it (Linux)"""

    def start(self, replaces: int | None) -> Process:
        """Execute the program."""
        return subprocess.Popen(
            self.arguments,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            pass_fds=self.inherited,
            # Ctrl-C in a terminal reaches the supervisor alone, which then stops its children in order
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid(), self.orphan_signal),
        )


@dataclass(frozen=True)
class ForkedFunction:
    """A child that runs a function in a fork. It inherits the loaded modules, so it starts within milliseconds."""

    name: str
    function: Callable[[int | None], int]
    """function that is called with the id of the process it replaces; its result is the exit code"""

    def start(self, replaces: int | None) -> Process:
        """Fork."""
        return ForkedProcess(self, replaces)


class ForkedProcess:
    """The running fork of a ForkedFunction.

    Signals stay blocked until the child has removed its parent's signal handlers.
    """

    def __init__(self, spec: ForkedFunction, replaces: int | None) -> None:
        self._process = multiprocessing.get_context("fork").Process(
            target=_run_in_child, args=(spec, replaces, os.getpid()), name=spec.name
        )
        with _stop_signals_blocked():
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """See ``Process`` for this and the other methods."""
        return self._process.exitcode

    def terminate(self) -> None:  # noqa: D102
        self._process.terminate()

    def kill(self) -> None:  # noqa: D102
        self._process.kill()

    def wait(self) -> int:  # noqa: D102
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
RESTART_SIGNAL = signal.SIGUSR1
"""Signal to the supervisor, to replace its gateways. SIGHUP stays what a closed terminal sends, which ends the
service."""


@contextmanager
def _stop_signals_blocked() -> Iterator[None]:
    """Block SIGINT and SIGTERM inside the block. A child forked there inherits the block, and unblocks them itself."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _run_in_child(spec: ForkedFunction, replaces: int | None, parent: int) -> None:
    for number in (*_STOP_SIGNALS, RESTART_SIGNAL):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    die_with_parent(parent)
    set_process_name(f"halfmoon-{spec.name.partition('-')[0]}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    sys.exit(spec.function(replaces))
