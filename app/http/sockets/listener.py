"""The sockets of a gateway process: the one that it listens on, with the check that it is not open to everybody by
accident; and its own Unix socket, for questions of its siblings and its supervisor about this very process.

All gateways of one ``halfmoon up`` answer at one address, so a request there reaches any of them. The file of the Unix
socket names the process. The folder is the supervisor's own (mode 0700). A question is one word; the answer is what
follows until the end of the stream.
"""

import ipaddress
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import structlog

from storage.errors import CannotStart


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    It is opened before the gateway starts, so that early connections wait instead of failing. Raises CannotStart.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CannotStart(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another --port (0 takes a "
            "free one)"
        ) from None


def check_exposure(access: str, host: str) -> None:
    """Raises CannotStart where other machines reach ``host`` and HALFMOON_ACCESS does not say who may call."""
    if access != "loopback":
        return
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host or "0.0.0.0", None)}
    except OSError:  # a name that cannot be resolved cannot be listened on either; listen() reports it
        return
    if not all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found):
        raise CannotStart(
            f"other machines may reach {host}, and no key is required; set HALFMOON_ACCESS=keys and make keys "
            "with `halfmoon keys create`, "
            "or HALFMOON_ACCESS=anyone if everybody who reaches the port may read, train and delete"
        )


READY, METRICS = b"ready", b"metrics"
"""Questions: whether the process can answer requests (``yes``, or why not), and its own metrics."""
_TIMEOUT_SECONDS = 2.0
_LONGEST_QUESTION = 64
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Processes(NamedTuple):
    """The gateway processes that share an address, as one of them sees them."""

    folder: Path
    """folder of their sockets"""
    several: bool
    """whether there are several but for a moment: then metrics say of which process they are"""

    def metrics_of_others(self) -> dict[int, bytes]:
        """Metrics of all other processes that answer, by process id."""
        asked = {
            process: ask(self.folder, process, METRICS) for process in processes(self.folder) if process != os.getpid()
        }
        return {process: text for process, text in asked.items() if text is not None}

    def answering(self, ready: Callable[[], bytes], metrics: Callable[[], bytes]) -> AbstractContextManager[None]:
        """Answer questions about this process until the block ends."""
        return answering(self.folder, {READY: ready, METRICS: metrics})


@contextmanager
def answering(folder: Path, answers: Mapping[bytes, Callable[[], bytes]]) -> Iterator[None]:
    """Answer questions about this process, in a thread, until the block ends."""
    path = socket_path(folder, os.getpid())
    path.unlink(missing_ok=True)  # of a dead process that had the same id
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=_serve, args=(listener, answers), name="process socket", daemon=True).start()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # wakes the thread, which then ends
                listener.shutdown(socket.SHUT_RDWR)


def ask(folder: Path, process: int, question: bytes) -> bytes | None:
    """The answer of a process; None if it does not answer in time."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT_SECONDS)
            connection.connect(str(socket_path(folder, process)))
            connection.sendall(question)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                return answer.read()
    except OSError:
        return None


def processes(folder: Path) -> list[int]:
    """Ids of the processes that have a socket in the folder, dead ones perhaps among them."""
    found = (re.fullmatch(r"(\d+)\.sock", path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in found if match)


def socket_path(folder: Path, process: int) -> Path:
    """The file of the socket of a process."""
    return folder / f"{process}.sock"


def _serve(listener: socket.socket, answers: Mapping[bytes, Callable[[], bytes]]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # it was shut down
            return
        with connection:
            connection.settimeout(_TIMEOUT_SECONDS)
            try:
                question = b""
                while len(question) < _LONGEST_QUESTION and (part := connection.recv(_LONGEST_QUESTION)):
                    question += part
                if question in answers:
                    connection.sendall(answers[question]())
            except OSError:
                pass
            except Exception:
                _log.exception("a question about this process was not answered")
