"""The proxy passes everything on, unless it is told to cut."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.storm.proxy import Cut, Proxy
from tests.there import there
from tests.waiting import HANG


def _echo(connection: socket.socket) -> None:
    with connection, suppress(ConnectionError):
        while data := connection.recv(100):
            connection.sendall(data)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=_echo, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        with Proxy(tmp_path / "s") as made:
            yield made
        server.shutdown(socket.SHUT_RDWR)


def _connected(proxy: Proxy) -> socket.socket:
    parts = urlsplit(proxy.url)
    return socket.create_connection((there(parts.hostname), there(parts.port)), timeout=HANG)


def _echoes(connection: socket.socket) -> bool:
    connection.sendall(b"ping")
    return connection.recv(100) == b"ping"


def test_all_comes_through(proxy: Proxy) -> None:
    with _connected(proxy) as connection:
        assert _echoes(connection)
        assert _echoes(connection)
        assert not proxy.away


def test_refused_connections_are_closed_old_and_new(proxy: Proxy) -> None:
    with _connected(proxy) as old:
        assert _echoes(old)
        with proxy.cut(Cut.REFUSED), _connected(proxy) as new:
            assert proxy.away
            assert old.recv(100) == b""
            assert new.recv(100) == b""
    with _connected(proxy) as after:
        assert _echoes(after)


def test_in_silence_nothing_comes_and_nobody_is_told(proxy: Proxy) -> None:
    with _connected(proxy) as old:
        assert _echoes(old)
        with proxy.cut(Cut.SILENT), _connected(proxy) as new:
            for connection in (old, new):
                connection.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    _echoes(connection)
        old.settimeout(HANG)
        assert old.recv(100) == b"ping", "what was sent meanwhile comes late, as over a real cable"
