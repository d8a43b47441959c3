"""What a process is to the system: under which name it is seen, and that it does not outlive the one that it belongs to."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_LONGEST_NAME = 15
"""bytes"""


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Have this process get signal ``number`` when ``parent`` dies (Linux; elsewhere nothing). Call it in the child, right after the fork."""
    if sys.platform != "linux":
        return
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before the call above
        os.kill(os.getpid(), number)


def set_process_name(name: str) -> None:
    """Have `ps` and `top` show this process under a name of at most 15 bytes (Linux; elsewhere nothing)."""
    if sys.platform == "linux":
        _prctl(_PR_SET_NAME, name.encode()[:_LONGEST_NAME])


def _prctl(what: int, value: int | bytes) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(what, value, 0, 0, 0)
