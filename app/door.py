"""The socket on which a gateway listens."""

import socket

from app.supervisor import CannotStart


def listen(host: str, port: int) -> socket.socket:
    """Made before what will answer on it, so that connections wait instead of failing meanwhile. Raises CannotStart."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CannotStart(f"cannot listen on {host} port {port}: {error.strerror or error}; choose another --port (0 takes a free one)") from None
