"""Which addresses webhooks may call: public ones, and the private networks that the operator allows.

This prevents server-side request forgery: no caller can have the service send requests into the network that it runs
in.
"""

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from core.errors import HalfmoonError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""the addresses of IPv6 that IANA has given out for the internet; Python also takes site-local ones (fec0::/10) for
global"""
_MAX_URL = 2000


class AddressRefused(HalfmoonError):
    """A webhook may not call this address."""


class Target(NamedTuple):
    """Where to connect, and what to ask there."""

    scheme: str
    host: str
    port: int
    path: str


def target_of(url: str) -> Target:
    """The parts of an address; raises AddressRefused for one that is none of HTTP."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused(f"is not an address: {error}") from None
    if (
        parts.scheme not in _PORTS
        or not parts.hostname
        or len(url) > _MAX_URL
        or not url.isascii()
        or any(each <= " " for each in url)
    ):
        raise AddressRefused("must be an address such as https://example.com/hook, of ASCII characters without spaces")
    if parts.username is not None or parts.fragment:
        raise AddressRefused("must have neither a user nor a fragment; receivers check the signature of a message")
    path = parts.path or "/"
    return Target(
        parts.scheme, parts.hostname, port or _PORTS[parts.scheme], f"{path}?{parts.query}" if parts.query else path
    )


def allowed_addresses(target: Target, networks: Sequence[Network]) -> list[str]:
    """The addresses of the host, all of which may be called. Raises AddressRefused, and OSError where the name is not
    known.

    A caller connects to one of these, not to the name: it could be another address a moment later.
    """
    try:
        answers = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise AddressRefused(
            "has a host that no name may be: a part of it is empty, or longer than 63 characters"
        ) from None
    found = list(dict.fromkeys(str(each[4][0]) for each in answers))
    for text in found:
        address = ipaddress.ip_address(text.partition("%")[0])
        if not _is_public(address) and not any(
            address in network for network in networks if network.version == address.version
        ):
            what = f"is at {text}, which is" if text != target.host else "is"
            raise AddressRefused(
                f"{target.host} {what} no public address; the operator may allow its network by "
                "HALFMOON_WEBHOOK_NETWORKS"
            )
    return found


def _is_public(address: Address) -> bool:
    return all(
        each.is_global and not each.is_multicast and not each.is_reserved and (each.version == 4 or each in _UNICAST)
        for each in _inside(address)
    )


def _inside(address: Address) -> Iterator[Address]:
    """The address, or the IPv4 addresses that it stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield address
        yield from (each for each in (address.sixtofour, *(address.teredo or ())) if each is not None)
