"""Supervisor of child processes: programs that are executed, and functions that run in a fork. It starts them, restarts
them with exponential back-off after an exit, and stops them.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.context import ForkProcess

from storage.process.system import die_with_parent, set_process_name


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

    def start(self, _replaces: int | None) -> subprocess.Popen[bytes]:
        """Execute the program; it does not learn which process it follows."""
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

    def start(self, replaces: int | None) -> "ForkedProcess":
        """Fork. Signals stay blocked until the child has removed its parent's signal handlers."""
        process = ForkedProcess(target=_run_in_child, args=(self, replaces, os.getpid()), name=self.name)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return process


class ForkedProcess(ForkProcess):
    """The running fork of a ForkedFunction, with the methods of ``subprocess.Popen``."""

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self.exitcode

    def wait(self) -> int:
        """Wait for the exit, and return the exit code."""
        self.join()
        assert self.exitcode is not None
        return self.exitcode


Process = subprocess.Popen[bytes] | ForkedProcess

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
RESTART_SIGNAL = signal.SIGUSR1
"""Signal to the supervisor, to replace its gateways. SIGHUP stays what a closed terminal sends, which ends the
service."""


def _run_in_child(spec: ForkedFunction, replaces: int | None, parent: int) -> None:
    for number in (*_STOP_SIGNALS, RESTART_SIGNAL):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    die_with_parent(parent)
    set_process_name(f"halfmoon-{spec.name.partition('-')[0]}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    sys.exit(spec.function(replaces))


FIRST_BACKOFF_SECONDS = 0.25
"""seconds before a child is restarted after its first exit; doubles with each exit that follows soon"""
LONGEST_BACKOFF_SECONDS = 2.0
"""seconds that the back-off never exceeds: a job whose worker has died must run again within ten seconds"""
STABLE_SECONDS = 10.0
"""seconds after which a child that runs is taken for stable: the back-off begins anew"""
_POLL_SECONDS = 0.02


@dataclass
class Child:
    """The state of one child."""

    spec: Program | ForkedFunction
    process: Process | None = None
    """running process; None between an exit and the restart"""
    replaces: int | None = None
    """id of the last process that exited"""
    started_at: float = 0.0
    """monotonic seconds of the last start"""
    backoff: float = 0.0
    """seconds of the last back-off; 0 before the first exit"""
    restart_at: float = 0.0
    """monotonic seconds of the next restart"""
    beside: Process | None = None
    """second process during a rolling restart: the new one until it is ready, the old one from then until it ends"""

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Keeps children running until they are stopped.

    Use it from the main thread: Linux ties the life of a child to the thread that started it.
    """

    def __init__(self, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._children: dict[str, Child] = {}

    def start(self, spec: Program | ForkedFunction) -> None:
        """Start a child and keep it running."""
        self._spawn(self._children.setdefault(spec.name, Child(spec)))

    def pid(self, name: str) -> int | None:
        """Process id of a child; None while it does not run."""
        child = self._children[name]
        return child.process.pid if child.process is not None and child.running else None

    def exited(self) -> list[str]:
        """Names of the children that do not run now."""
        return [name for name, child in self._children.items() if not child.running]

    def poll(self) -> None:
        """Note exits of children, and restart children after their back-off. Call it a few times a second."""
        for child in self._children.values():
            if child.process is None and self._clock() >= child.restart_at:
                try:
                    self._spawn(child)
                except OSError as error:  # there is no memory or no process left, just now
                    self._back_off(child, f"could not be started: {error.strerror or error}")
            elif child.process is not None and child.process.poll() is not None:
                exit_code = child.process.wait()
                child.replaces, child.process = child.process.pid, None
                self._back_off(child, exit_in_words(exit_code))

    def stop(self, names: Sequence[str], grace_seconds: float, cut_short: Callable[[], bool] = lambda: False) -> None:
        """Send SIGTERM to these children, and SIGKILL to those that still run after the grace period, which they share.

        The grace period also ends as soon as ``cut_short`` returns true.
        """
        children = [self._children.pop(name) for name in names if name in self._children]
        processes = [process for child in children for process in (child.process, child.beside) if process is not None]
        for process in processes:
            process.terminate()
        deadline = self._clock() + grace_seconds
        while any(process.poll() is None for process in processes) and self._clock() < deadline and not cut_short():
            time.sleep(_POLL_SECONDS)
        for process in processes:
            process.kill()
            process.wait()

    def names(self) -> list[str]:
        """Names of all children, in the order of their first start."""
        return list(self._children)

    def start_beside(self, name: str) -> Process:
        """Start a second process of a child, which is to take the place of the first. Raises OSError."""
        child = self._children[name]
        child.beside = child.spec.start(None)
        return child.beside

    def promote(self, name: str) -> None:
        """Let the second process of a child be the one that is kept running, and the first one the second."""
        child = self._children[name]
        child.process, child.beside = child.beside, child.process
        child.started_at = self._clock()
        if child.beside is not None:
            child.beside.terminate()

    def retire(self, name: str, *, kill: bool) -> bool:
        """Whether the second process of a child, which was told to stop, still runs; ``kill``: it may no longer."""
        child = self._children[name]
        if child.beside is not None and (kill or child.beside.poll() is not None):
            self.discard(name)
        return child.beside is not None

    def discard(self, name: str) -> None:
        """Kill the second process of a child, if a rolling restart has one, and wait for its end."""
        child = self._children[name]
        if child.beside is not None:
            child.beside.kill()
            child.beside.wait()
            child.beside = None

    def _spawn(self, child: Child) -> None:
        child.started_at = self._clock()
        child.process = child.spec.start(child.replaces)

    def _back_off(self, child: Child, event: str) -> None:
        stable = self._clock() - child.started_at > STABLE_SECONDS
        child.backoff = (
            FIRST_BACKOFF_SECONDS if stable or not child.backoff else min(2 * child.backoff, LONGEST_BACKOFF_SECONDS)
        )
        child.restart_at = self._clock() + child.backoff
        self._report(f"{child.spec.name} {event}; restart in {child.backoff:g} s")


def exit_in_words(exit_code: int) -> str:
    """How a process ended, from its exit code (negative: the signal that ended it)."""
    return f"exited with code {exit_code}" if exit_code >= 0 else f"was killed by {signal.Signals(-exit_code).name}"
