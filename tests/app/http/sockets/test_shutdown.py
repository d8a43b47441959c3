"""A server that stops answers requests on its open connections."""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from app.http.sockets.connection import LINGER_SECONDS, Connection
from app.serve import GatewayServer
from tests.waiting import SOON, until

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Running:
    """A server in a thread; its listening socket stays open when it stops, like a supervisor's."""

    def __init__(self, listener: socket.socket) -> None:
        self.server = GatewayServer(
            uvicorn.Config(app, http=Connection, loop="uvloop", lifespan="off", log_config=None)
        )
        self.listener = listener
        self.thread = threading.Thread(target=self.server.run, args=([listener.dup()],), daemon=True)
        self.thread.start()
        until(lambda: self.server.started)

    def connect(self) -> socket.socket:
        connection = socket.create_connection(self.listener.getsockname(), timeout=SOON)
        connection.sendall(REQUEST)
        assert b"connection: close" not in self.answer(connection)
        return connection

    @staticmethod
    def answer(connection: socket.socket) -> bytes:
        text = b""
        while not text.endswith(b"ok") and (part := connection.recv(4096)):
            text += part
        return text


@pytest.fixture
def running() -> Iterator[Running]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Running(listener)
        yield made
        made.server.should_exit = True
        made.thread.join(SOON)


def test_idle_connections_get_one_more_answer(running: Running) -> None:
    with running.connect() as used, running.connect() as idle:
        running.server.should_exit = True
        until(lambda: not all(server.is_serving() for server in running.server.servers))
        began = time.monotonic()
        used.sendall(REQUEST)
        answer = running.answer(used)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.count(b"connection: close") == 1
        assert used.recv(1) == b""
        assert idle.recv(1) == b""
    assert time.monotonic() - began > LINGER_SECONDS / 2
    running.thread.join(SOON)
    assert not running.thread.is_alive()


def test_new_connections_wait_for_the_next_server(running: Running) -> None:
    running.server.should_exit = True
    running.thread.join(SOON)
    with socket.create_connection(running.listener.getsockname(), timeout=SOON) as early:
        early.sendall(REQUEST)
        successor = Running(running.listener)
        assert running.answer(early).startswith(b"HTTP/1.1 200")
        early.close()
        successor.server.should_exit = True
        successor.thread.join(SOON)
