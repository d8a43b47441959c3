"""Sends a message to a webhook, signed as Standard Webhooks say: https://www.standardwebhooks.com."""

import base64
import binascii
import hashlib
import hmac
import http.client
import secrets
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version

from app.services.webhooks.addresses import AddressRefused, Network, Target, allowed_addresses, target_of

_PREFIX = "whsec_"
_SECRET_BYTES = range(24, 65)
_SECONDS = 10.0
"""seconds of a try, in all"""


class SendFailed(Exception):
    """A try failed; the text says why."""


def new_secret() -> str:
    """A secret to sign by."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def is_secret(text: str) -> bool:
    """Whether a text has the form of a secret: whsec_ and 24 to 64 bytes as base64."""
    try:
        return text.startswith(_PREFIX) and len(base64.b64decode(text.removeprefix(_PREFIX), validate=True)) in _SECRET_BYTES
    except (binascii.Error, ValueError):
        return False


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The signature of a message that is sent at this time, in seconds since 1970."""
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)).decode()


class Sender:
    """Sends to public addresses, and to those in the networks given."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks
        self._tls = ssl.create_default_context()

    def check(self, url: str) -> None:
        """Raises AddressRefused for an address that may not be called now. A name that is not known yet may be."""
        with suppress(OSError):
            allowed_addresses(target_of(url), self._networks)

    def send(self, url: str, secret: str, id: str, body: bytes, timestamp: int) -> None:
        """Send a message. Raises SendFailed, unless the receiver answers with a status of success. Redirects are not followed."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"halfmoon/{version('halfmoon')}",
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(secret, id, timestamp, body),
        }
        try:
            target = target_of(url)
            status = self._post(target, allowed_addresses(target, self._networks)[0], body, headers)
        except AddressRefused as error:
            raise SendFailed(str(error)) from None
        except (OSError, http.client.HTTPException) as error:
            raise SendFailed(f"no answer: {error or type(error).__name__}") from None
        if not 200 <= status < 300:
            raise SendFailed(f"the answer was {status}" + (", and redirects are not followed" if 300 <= status < 400 else ""))

    def _post(self, target: Target, address: str, body: bytes, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection(target.host, target.port, timeout=_SECONDS)
        connected = socket.create_connection((address, target.port), _SECONDS)
        # a receiver that sends a byte now and then would not run into the time-out of the socket
        over = threading.Event()
        deadline = threading.Timer(_SECONDS, _shut, (connected, over))
        deadline.daemon = True
        deadline.start()
        try:
            connection.sock = self._tls.wrap_socket(connected, server_hostname=target.host) if target.scheme == "https" else connected
            connection.request("POST", target.path, body, headers)
            status = connection.getresponse().status
            if over.is_set():
                raise TimeoutError("timed out")
            return status
        finally:
            deadline.cancel()
            connection.close()
            connected.close()


def _shut(connected: socket.socket, over: threading.Event) -> None:
    over.set()
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
