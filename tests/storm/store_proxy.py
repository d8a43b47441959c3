"""A TCP proxy before an S3 server, by which its answers come slowly, not at all, by half or with a wrong byte."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import NamedTuple, Self
from urllib.parse import urlsplit

_BLOCK = 1 << 16


class Ill(StrEnum):
    """Fate of answers."""

    SLOW = "slow"
    """each block waits for some time"""
    SILENT = "silent"
    """nothing comes any more, and no connection is closed"""
    HALF = "half"
    """the connection is closed after some bytes"""
    LOST = "lost"
    """the request arrives, and the connection is closed before its answer"""
    WRONG = "wrong"
    """the last byte of a block is another"""


class Illness(NamedTuple):
    """A way in which answers go wrong, so often."""

    kind: Ill
    times: int = 1_000_000
    """number of answers that go wrong; then all is well"""
    seconds: float = 0.0
    """delay of a slow block"""
    n_bytes: int = 0
    """bytes after which an answer is cut, or only from which size on a block gets a wrong byte"""


class StoreProxy(ThreadingTCPServer):
    """A context manager; listens on a free port of this machine, and passes requests on to ``endpoint``."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        parts = urlsplit(endpoint)
        self.target = (parts.hostname or "127.0.0.1", parts.port or 80)
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        self._illness: Illness | None = None
        self._left = 0
        self._guard = threading.Lock()
        self.well = threading.Event()
        self.well.set()
        self._thread = threading.Thread(target=self.serve_forever, name="store proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *arguments: object) -> None:
        self.well.set()
        self.shutdown()
        self.server_close()
        self._thread.join()

    @contextmanager
    def ill(self, illness: Illness) -> Iterator[None]:
        """Answers go wrong inside the block."""
        self._illness, self._left = illness, illness.times
        if illness.kind is Ill.SILENT:
            self.well.clear()
        try:
            yield
        finally:
            self._illness = None
            self.well.set()

    def afflict(self, kinds: tuple[Ill, ...], size: int = 0) -> Illness | None:
        """The illness of the next answer, or of its next block of this size, if it is of these kinds; it counts as one
        of the times.
        """
        with self._guard:
            illness = self._illness
            if (
                illness is None
                or illness.kind not in kinds
                or self._left <= 0
                or (illness.kind is Ill.WRONG and size < illness.n_bytes)
            ):
                return None
            self._left -= 1
            return illness


class _Connection(BaseRequestHandler):
    server: StoreProxy

    def handle(self) -> None:
        with suppress(OSError), socket.create_connection(self.server.target) as target:
            asking = threading.Thread(target=self._ask, args=(target,), daemon=True)
            asking.start()
            self._answer(target)

    def _ask(self, target: socket.socket) -> None:
        with suppress(OSError):
            while block := self.request.recv(_BLOCK):
                target.sendall(block)
            target.shutdown(socket.SHUT_WR)

    def _answer(self, target: socket.socket) -> None:
        sent = 0
        half: Illness | None = None
        while block := target.recv(_BLOCK):
            self.server.well.wait()
            if self.server.afflict((Ill.LOST,)) is not None:
                break
            half = half or self.server.afflict((Ill.HALF,))
            if half is not None and sent + len(block) > half.n_bytes:
                self.request.sendall(block[: max(0, half.n_bytes - sent)])
                break
            slow = self.server.afflict((Ill.SLOW,))
            if slow is not None:
                threading.Event().wait(slow.seconds)
            if self.server.afflict((Ill.WRONG,), len(block)) is not None:
                block = block[:-1] + bytes([block[-1] ^ 1])
            self.request.sendall(block)
            sent += len(block)
        with suppress(OSError):
            self.request.shutdown(socket.SHUT_RDWR)
