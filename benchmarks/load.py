"""An HTTP client that costs little beside the measured server: blocking sockets, a thread a connection, requests
prepared beforehand.
"""

import http.client
import io
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx

T = TypeVar("T")


class Latencies(NamedTuple):
    """Seconds of single requests, from the moment at which each was due."""

    seconds: list[float]

    def quantile(self, share: float) -> float:
        return statistics.quantiles(self.seconds, n=1000, method="inclusive")[round(share * 1000) - 1]


class Connection:
    """One kept-alive connection; ``send`` waits for the whole answer."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._host = parts.netloc
        self._socket = socket.create_connection((parts.hostname, parts.port or 80), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 20)

    def send(self, request: bytes) -> bytes:
        """The body of the answer; raises RuntimeError for any status but 2xx."""
        self._socket.sendall(request)
        return self.answer()

    def answer(self) -> bytes:
        text = b""
        while (head := text.find(b"\r\n\r\n")) < 0:
            text += self._received()
        length = int(text[:head].lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        parts, missing = [text[head + 4 :]], length - (len(text) - head - 4)
        while missing > 0:
            parts.append(self._received())
            missing -= len(parts[-1])
        if text[9:10] != b"2":
            raise RuntimeError(f"{text[:head].decode()}\n{b''.join(parts)[:500].decode()}")
        return b"".join(parts)

    def begin(self, path: str, media_type: str) -> io.BufferedWriter:
        """The body of a POST, to be written as it is made and closed; then ``answer``."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: {media_type}\r\nTransfer-Encoding: "
            "chunked\r\n\r\n"
        )
        self._socket.sendall(head.encode())
        return io.BufferedWriter(_Chunks(self._socket), 256 << 10)

    def close(self) -> None:
        self._socket.close()

    def _received(self) -> bytes:
        count = self._socket.recv_into(self._buffer)
        if count == 0:
            raise ConnectionError("the server closed the connection")
        return bytes(self._buffer[:count])


class _Chunks(io.RawIOBase):
    """Whatever is written goes out as a chunk; closing ends the body."""

    def __init__(self, target: socket.socket) -> None:
        self._target = target

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._target.sendall(b"%x\r\n" % len(data))
        self._target.sendall(data)
        self._target.sendall(b"\r\n")
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._target.sendall(b"0\r\n\r\n")


def request(path: str, body: bytes, media_type: str = "application/json") -> bytes:
    """A POST, ready to be sent any number of times."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nContent-Length: "
        f"{len(body)}\r\n\r\n".encode()
        + body
    )


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    connection = Connection(url)
    try:
        yield connection
    finally:
        connection.close()


def open_loop(url: str, content: bytes, rate: float, seconds: float, connections: int = 16) -> Latencies:
    """Requests at fixed moments whatever the server does: one that must wait for its connection counts from when it was
    due.
    """
    begin = time.perf_counter() + 0.2

    def one(number: int) -> list[float]:
        taken = []
        with connected(url) as connection:
            for turn in range(number, int(rate * seconds), connections):
                due = begin + turn / rate
                time.sleep(max(0.0, due - time.perf_counter()))
                connection.send(content)
                taken.append(time.perf_counter() - due)
        return taken

    return Latencies([taken for each in _in_threads(one, connections) for taken in each])


def closed_loop(url: str, content: bytes, connections: int, seconds: float) -> float:
    """Answers a second when every connection sends its next request as soon as it has the answer to the last."""
    begin = time.perf_counter()

    def one(number: int) -> int:
        count = 0
        with connected(url) as connection:
            while time.perf_counter() - begin < seconds:
                connection.send(content)
                count += 1
        return count

    count = sum(_in_threads(one, connections))
    return count / (time.perf_counter() - begin)


def status_of(url: str, path: str) -> int:
    """Of a GET; 0 if nobody answers."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def is_ready(url: str) -> bool:
    """Whether a gateway says that it can serve."""
    return status_of(url, "/v1/health/ready") == 200


def n_taking(url: str) -> int:
    """Number of workers that take jobs, as a gateway says."""
    return int(httpx.get(f"{url}/v1/health/ready", trust_env=False, timeout=30).json().get("workers", 0))


def _in_threads(work: Callable[[int], T], count: int) -> list[T]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))
