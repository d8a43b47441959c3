"""Attributes of a process: its name, a signal at the death of its parent, and what of its memory is garbage."""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_LONGEST_NAME = 15
"""bytes of a name"""


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the system send signal ``number`` to this process when ``parent`` dies (Linux; elsewhere nothing).

    Call it in the child, after the fork.
    """
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before the call above
            os.kill(os.getpid(), number)


@contextmanager
def lasting() -> Iterator[None]:
    """Look for no garbage among what is loaded inside the block, then or later: it lives as long as the process.

    Looking at it would delay the start, and later single requests, and take memory pages from those that share them
    after a fork.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def release_memory() -> None:
    """Give freed memory back to the system, which the C library keeps otherwise (glibc; elsewhere nothing), with that
    of new garbage.
    """
    gc.collect(0)
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def set_process_name(name: str) -> None:
    """Set the name that `ps` and `top` show, of at most 15 bytes (Linux; elsewhere nothing)."""
    if sys.platform == "linux":
        _prctl(_PR_SET_NAME, name.encode()[:_LONGEST_NAME])


def _prctl(what: int, value: int | bytes) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(what, value, 0, 0, 0)
