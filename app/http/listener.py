"""The socket on which a gateway listens, and whether it may be reached from elsewhere."""

import ipaddress
import socket

from app.settings import GatewaySettings
from workers.errors import CannotStart


def listen(host: str, port: int) -> socket.socket:
    """Made before what will answer on it, so that connections wait instead of failing meanwhile. Raises CannotStart."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CannotStart(f"cannot listen on {host} port {port}: {error.strerror or error}; choose another --port (0 takes a free one)") from None


def check_exposure(settings: GatewaySettings, host: str) -> None:
    """Raises CannotStart where everybody who reaches an address beyond this machine might do everything without anybody having said so."""
    if settings.access == "loopback" and not _is_loopback(host):
        raise CannotStart(
            f"other machines may reach {host}, and nobody is asked for a key; set HALFMOON_ACCESS=keys and make keys with `halfmoon keys create`, "
            "or HALFMOON_ACCESS=anyone if whoever reaches the port may read, train and delete"
        )


def _is_loopback(host: str) -> bool:
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host or "0.0.0.0", None)}
    except OSError:  # what cannot be looked up cannot be listened on: whoever tries says so
        return True
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found)
