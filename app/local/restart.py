"""Rolling restart of the gateways of ``halfmoon up``: each is replaced by a new process, one after the other, while the
others answer.

1. A new process is started beside the old one. Both accept connections from the one listening socket.
2. When the new one is ready, the old one is told to stop: it accepts no more, and answers what comes on its open
   connections.
3. When the old one has ended, it is the next one's turn.

If a new process is not ready in time, it is stopped again, and everything stays as it is. ``halfmoon restart`` requests
a restart by a signal and learns from a file in the data folder how it ended.
"""

import fcntl
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from app.local.supervisor import RESTART_SIGNAL, Supervisor
from storage.errors import CannotStart

READY_SECONDS = 60.0
"""Seconds that a new gateway has to become ready."""
_RESTART_SECONDS = 600.0
"""seconds for which the end of a restart is waited for"""
_POLL_SECONDS = 0.1
_ENDED = "restart"
"""File in the data folder: one line for each restart that has ended, since the supervisor was started."""


class RestartRequests:
    """Signal handler that counts requests for a restart, and the restarts that they are answered by."""

    def __init__(self, data: Path) -> None:
        self._file = data / _ENDED
        self._file.write_text("")
        self._requested = self._begun = 0

    def __call__(self, number: int, frame: object) -> None:
        """Count a request."""
        self._requested += 1

    def take(self) -> bool:
        """Whether a restart was requested since the last one began. Requests during a restart lead to one more."""
        found, self._begun = self._requested > self._begun, self._requested
        return found

    def ended(self, how: str) -> None:
        """Record how a restart ended, for the command that waits for it."""
        with suppress(OSError), self._file.open("a") as file:
            file.write(f"{how}\n")


def rolling_restart(
    supervisor: Supervisor,
    names: Sequence[str],
    ready: Callable[[int], str | None],
    grace_seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[str]:
    """Replace children one after the other. Call it again and again, beside the supervisor's ``poll``; the last thing
    that it yields is how it ended.

    ``ready`` says of a process id what is missing, None if nothing. An old process has ``grace_seconds`` to end.
    """
    for name in names:
        problem = yield from _replace(supervisor, name, ready, clock)
        if problem is not None:
            yield f"{name} was not replaced, nor what comes after it, since {problem}; what ran goes on"
            return
        deadline = clock() + grace_seconds
        while supervisor.retire(name, kill=clock() > deadline):
            yield ""
    yield f"replaced {', '.join(names)}"


def _replace(
    supervisor: Supervisor, name: str, ready: Callable[[int], str | None], clock: Callable[[], float]
) -> Generator[str, None, str | None]:
    """Start a new process of a child, and let it take the place of the old one when it is ready.

    Returns why it does not; None if it does.
    """
    deadline = clock() + READY_SECONDS
    try:
        process = supervisor.start_beside(name)
    except OSError as error:
        return f"no new process could be started: {error.strerror or error}"
    assert process.pid is not None, "it was started"
    while (missing := ready(process.pid)) is not None:
        ended, late = process.poll() is not None, clock() > deadline
        if ended or late:
            supervisor.discard(name)
            return (
                "the new process has ended; its message is above"
                if ended
                else f"the new one was not ready within {READY_SECONDS:g} s: {missing}"
            )
        yield ""
    supervisor.promote(name)
    return None


def request_restart(data: Path) -> str:
    """Request a restart from the supervisor that runs on a data folder, wait for its end, and return the outcome.

    Raises CannotStart.
    """
    file = data / _ENDED
    process = _supervisor_of(data)
    before = len(file.read_text().splitlines())
    os.kill(process, RESTART_SIGNAL)
    deadline = time.monotonic() + _RESTART_SECONDS
    while len(ended := file.read_text().splitlines()) <= before:
        if _supervisor_of(data) != process:
            raise CannotStart("the service was stopped meanwhile")
        if time.monotonic() > deadline:
            raise CannotStart(f"the restart has not ended within {_RESTART_SECONDS:g} s; the service says why")
        time.sleep(_POLL_SECONDS)
    if not ended[before].startswith("replaced"):
        raise CannotStart(ended[before])
    return ended[before]


def _supervisor_of(data: Path) -> int:
    """Id of the process that has locked the data folder. Raises CannotStart if there is none."""
    try:
        with (data / "lock").open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read())
    except (OSError, ValueError):
        pass
    raise CannotStart(f"no halfmoon runs on the data folder {data}; name it with --data")
