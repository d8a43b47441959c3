"""Supervisor of child processes: starts them, restarts them with exponential back-off after an exit, and stops them."""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.local.children import ChildSpec, Process

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

    spec: ChildSpec
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

    def start(self, spec: ChildSpec) -> None:
        """Start a child and keep it running."""
        child = self._children.setdefault(spec.name, Child(spec))
        self._spawn(child)

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
                assert child.process is not None
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
