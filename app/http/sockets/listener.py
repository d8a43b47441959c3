"""The socket that a gateway listens on, and the check that it is not open to everybody by accident."""

import ipaddress
import socket

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
    if access == "loopback" and not _is_loopback(host):
        raise CannotStart(
            f"other machines may reach {host}, and no key is required; set HALFMOON_ACCESS=keys and make keys "
            "with `halfmoon keys create`, "
            "or HALFMOON_ACCESS=anyone if everybody who reaches the port may read, train and delete"
        )


def _is_loopback(host: str) -> bool:
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host or "0.0.0.0", None)}
    except OSError:  # a name that cannot be resolved cannot be listened on either; listen() reports it
        return True
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found)
