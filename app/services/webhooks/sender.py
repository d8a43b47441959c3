"""Sends messages to webhooks, signed as Standard Webhooks say: https://www.standardwebhooks.com.

Only public addresses are called, and the private networks that the operator allows. This prevents server-side request
forgery: no caller can have the service send requests into the network that it runs in."""

import base64
import binascii
import hashlib
import hmac
import http.client
import ipaddress
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from importlib.metadata import version
from typing import NamedTuple
from urllib.parse import urlsplit

from core.errors import HalfmoonError

_PREFIX = "whsec_"
_SECRET_BYTES = range(24, 65)
_SECONDS = 10.0
"""seconds of a try, in all"""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SPECIAL: tuple[Network, ...] = (
    *map(ipaddress.IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")),
    ipaddress.IPv6Network("3fff::/20"),
)
"""addresses for protocols, relays and documentation (RFC 6890, 7526, 9637), which Python takes for global"""
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""the addresses of IPv6 that IANA has given out for the internet; Python also takes site-local ones (fec0::/10) for
global"""
_MAX_URL = 2000


class AddressRefused(HalfmoonError):
    """A webhook may not call this address."""


class Target(NamedTuple):
    """Address and path of a webhook."""

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
    """The allowed addresses of the host. Raises AddressRefused, and OSError where the name is not known.

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
    """Whether the address is public, and the IPv4 addresses that it stands for."""
    meant: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            meant = [address.ipv4_mapped]
        elif address in _NAT64:
            meant = [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
        else:
            meant += [each for each in (address.sixtofour, *(address.teredo or ())) if each is not None]
    return all(
        each.is_global
        and not each.is_multicast
        and not each.is_reserved
        and (each.version == 4 or each in _UNICAST)
        and not any(each in network for network in _SPECIAL if network.version == each.version)
        for each in meant
    )


class SendFailed(Exception):
    """A try failed; the text says why. ``status`` is the answer of the receiver, None where it could not be asked."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


def new_secret() -> str:
    """A secret to sign by."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def is_secret(text: str) -> bool:
    """Whether a text has the form of a secret: whsec_ and 24 to 64 bytes as base64."""
    try:
        return (
            text.startswith(_PREFIX)
            and len(base64.b64decode(text.removeprefix(_PREFIX), validate=True)) in _SECRET_BYTES
        )
    except (binascii.Error, ValueError):
        return False


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The signature of a message that is sent at this time, in seconds since 1970."""
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)).decode()


class Sender:
    """Sends to public addresses and to these networks."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The certificates of the world.

        They are read at the first message that needs them, not by every gateway as it starts.
        """
        return ssl.create_default_context()

    def check(self, url: str) -> None:
        """Raises AddressRefused for an address that may not be called now. A name that is not known yet may be."""
        with suppress(OSError):
            allowed_addresses(target_of(url), self._networks)

    def send(self, url: str, secret: str, id: str, body: bytes, timestamp: int) -> None:
        """Send a message.

        Raises SendFailed, unless the receiver answers with a status of success. Redirects are not followed.
        """
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"halfmoon/{version('halfmoon')}",
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(secret, id, timestamp, body),
        }
        try:
            target = target_of(url)
            status = self._post(target, allowed_addresses(target, self._networks), body, headers)
        except AddressRefused as error:
            raise SendFailed(str(error)) from None
        except (OSError, http.client.HTTPException) as error:
            raise SendFailed(f"no answer: {error or type(error).__name__}") from None
        if not 200 <= status < 300:
            raise SendFailed(
                f"the answer was {status}" + (", and redirects are not followed" if 300 <= status < 400 else ""), status
            )

    def _post(self, target: Target, addresses: Sequence[str], body: bytes, headers: dict[str, str]) -> int:
        end = time.monotonic() + _SECONDS
        connected = _connect(addresses, target.port, end)
        with (
            _shut_at(connected, end),
            closing(http.client.HTTPConnection(target.host, target.port)) as connection,
            connected,
        ):
            connection.sock = (
                self._tls.wrap_socket(connected, server_hostname=target.host) if target.scheme == "https" else connected
            )
            connection.request("POST", target.path, body, headers)
            return connection.getresponse().status


def _connect(addresses: Sequence[str], port: int, end: float) -> socket.socket:
    """A connection to the first address that takes one, as a host may have one of IPv6 that is not reached from here.

    Raises OSError.
    """
    failed: OSError = TimeoutError("timed out")
    for address in addresses:
        left = end - time.monotonic()
        if left <= 0:
            break
        try:
            return socket.create_connection((address, port), left)
        except OSError as error:
            failed = error
    raise failed


@contextmanager
def _shut_at(connected: socket.socket, end: float) -> Iterator[None]:
    """Ends a connection at a time of ``time.monotonic``, and raises TimeoutError then.

    A receiver that sends a byte now and then does not run into the time-out of the socket. TLS takes the socket over
    and leaves nothing of it to shut down, so this holds a duplicate, which stands for the same connection.
    """
    over = threading.Event()
    with connected.dup() as duplicate:

        def shut() -> None:
            over.set()
            with suppress(OSError):
                duplicate.shutdown(socket.SHUT_RDWR)

        deadline = threading.Timer(max(0.0, end - time.monotonic()), shut)
        deadline.daemon = True
        deadline.start()
        try:
            yield
        except (OSError, ValueError, http.client.HTTPException):
            if not over.is_set():
                raise
        finally:
            deadline.cancel()
    if over.is_set():
        raise TimeoutError("timed out")
