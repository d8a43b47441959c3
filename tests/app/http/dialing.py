"""Connections that send what they like."""

import socket

from tests.app.conftest import NDJSON, Gateway
from tests.waiting import HANG


def dial(gateway: Gateway) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=HANG)


def head(path: str, media_type: str = NDJSON, length: int = 1 << 20) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()
