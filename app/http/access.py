"""Access control: API keys and their scopes, or the Host of the request where no keys are required."""

import base64
import ipaddress
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope as Connection

from app.errors import CrossSite, Forbidden, Misdirected, Unauthenticated
from app.settings import GatewaySettings
from storage.errors import StoreUnavailable
from storage.records import MAX_TEXT
from storage.repositories.api_keys import ApiKey, ApiKeys, Scope, expired, find

COOKIE = "halfmoon-key"
"""Name of the cookie in which a browser sends the key of a person at the page."""
PAGE_HEADER = "x-halfmoon-page"
"""Header without which the cookie is not read, unless the browser says that a link or a frame of the page asks: no form
or image of another site can send either, which prevents CSRF."""
_NO_KEY = ("health", "page")
"""Tags of calls for which no key is needed."""
KEY_ID = "halfmoon.key"
"""Key of the ASGI scope: id of the API key of the request."""
SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "`Authorization: Bearer hm_…`; keys are made by `halfmoon keys create`.",
    },
    "header": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same key, for clients that cannot send the other header.",
    },
}

_CALLER_BITS = 64
"""Bits of the network of a caller by IPv6."""
ANY_HOST = "*"
"""The entry of HALFMOON_ALLOWED_HOSTS that allows every Host."""

Scopes = frozenset[Scope]
_ANY_SCOPE = frozenset(Scope)
_READ_METHODS = frozenset({"GET", "HEAD"})
_TAKING_METHODS = frozenset({"DELETE", "PATCH"})
"""Methods by which something is removed or renamed, which a key to label must not do."""
_WRITE_SCOPES: Mapping[str, Scopes] = {
    "datasets": frozenset({Scope.TRAIN}),
    "jobs": frozenset({Scope.TRAIN}),
    "models": frozenset(),
    "predictions": frozenset({Scope.PREDICT}),
    "suggestions": frozenset({Scope.TRAIN}),
    "inference": frozenset({Scope.PREDICT}),
    "label-studio": frozenset({Scope.PREDICT}),
    "label-studio-training": frozenset({Scope.TRAIN}),
    "evaluations": frozenset({Scope.PREDICT, Scope.TRAIN}),
}
_READ_SCOPES: Mapping[str, Scopes] = {
    **_WRITE_SCOPES,
    "models": frozenset({Scope.PREDICT, Scope.TRAIN}),
    "metrics": _ANY_SCOPE,
}


def caller_of(connection: Connection) -> str:
    """The caller of a request, for limits: its API key, or else its address; of IPv6 the network, as one machine has
    all of it.
    """
    if KEY_ID in connection:
        return str(connection[KEY_ID])
    address, _ = connection.get("client") or ("", 0)
    try:
        return str(ipaddress.ip_network((address, _CALLER_BITS), strict=False)) if ":" in address else address
    except ValueError:  # no address, as of another proxy
        return str(address)


@lru_cache(maxsize=256)
def scopes_for(tag: str, method: str) -> Scopes | None:
    """The scopes that allow a call; None if no key is needed. The scope admin allows every call."""
    if tag in _NO_KEY:
        return None
    table = _READ_SCOPES if method in _READ_METHODS else _WRITE_SCOPES
    scopes = table.get(tag, frozenset())
    labels = {Scope.LABEL} if scopes and method not in _TAKING_METHODS else frozenset[Scope]()
    return scopes | labels | {Scope.ADMIN}


class Access:
    """Decides who may call, by the setting ``access``.

    - keys: a caller needs a valid key that has a scope of the call.
    - loopback: callers on this machine need no key.
    - anyone: no caller needs a key.

    Where no key is required, the Host of a request must be an address or a known name (``HostCheck``), which prevents
    DNS rebinding. Keys are kept in memory, so a check reads no store. ``refresh`` reads them again.
    """

    def __init__(self, keys: ApiKeys, settings: GatewaySettings) -> None:
        self._keys = keys
        self._requires_key = settings.access == "keys"
        self._metrics_require_key = self._requires_key and not settings.public_metrics
        self._host_check = None if self._requires_key else HostCheck(settings)
        self._origins = settings.cors_origins
        self._valid: dict[str, ApiKey] | None = None

    @property
    def ready(self) -> bool:
        """Whether the keys were read, if keys are required."""
        return not self._requires_key or self._valid is not None

    def refresh(self) -> None:
        """Read new and revoked keys. Raises StoreUnavailable; the keys that were read before then stay valid."""
        if self._requires_key:
            self._valid = {listed.key.id: listed.key for listed in self._keys.every() if not listed.revoked}

    def authorize(self, connection: Connection, tag: str) -> None:
        """Check that a request may make this kind of call, and note its key in the ASGI scope.

        Raises Unauthenticated and Forbidden where keys are required, StoreUnavailable before they were read, and
        Misdirected and CrossSite for a Host and a page that are not allowed where they are not.
        """
        scopes = scopes_for(tag, connection["method"])
        if scopes is not None and self._host_check is not None:
            headers = Headers(scope=connection)
            self._host_check.check(headers.getlist("host"))
            if connection["method"] not in _READ_METHODS:
                check_origin(headers, self._origins)
        if scopes is None or not (self._metrics_require_key if tag == "metrics" else self._requires_key):
            return
        text = _key_of(Headers(scope=connection))
        if text is None:
            raise Unauthenticated("a key is required: Authorization: Bearer …, or X-API-Key", sent=False)
        key = self._find(text)
        connection[KEY_ID] = key.id
        if scopes.isdisjoint(key.scopes):
            raise Forbidden(key.scopes, sorted(scopes))

    def check_key(self, text: str) -> None:
        """Raise Unauthenticated for a key that is not valid, where keys are required.

        StoreUnavailable before they were read.
        """
        if self._requires_key:
            self._find(text)

    def _find(self, text: str) -> ApiKey:
        if self._valid is None:
            raise StoreUnavailable("the keys could not be read yet")
        key = find(text, self._valid, datetime.now(UTC))
        if key is None:
            raise Unauthenticated("the key is not valid, or no longer valid", sent=True)
        return key

    def check_again(self, connection: Connection) -> None:
        """Check that the key of a request that lasts is valid still.

        Raises Unauthenticated, which closes the connection.
        """
        id = connection.get(KEY_ID)
        key = None if id is None or self._valid is None else self._valid.get(id)
        if id is not None and (key is None or expired(key, datetime.now(UTC))):
            error = Unauthenticated("the key is no longer valid", sent=True)
            error.headers = {**error.headers, "Connection": "close"}
            raise error


def _key_of(headers: Headers) -> str | None:
    """The key that a request sends, if any."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return text.strip()
    if scheme.lower() == "basic":
        # for clients that know no other: the key is the password, whatever the name of the user is
        try:
            return base64.b64decode(text.strip(), validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    own = PAGE_HEADER in headers or headers.get("sec-fetch-site") == "same-origin"
    if "x-api-key" in headers or not own:
        return headers.get("x-api-key")
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def check_origin(headers: Headers, allowed: Sequence[str]) -> None:
    """Raise CrossSite for a request that a page of another origin makes a browser send, unless that is allowed.

    A form or a fetch without CORS asks nobody before it sends. Another port of the same machine is another origin.
    Programs that are no browsers send neither header.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site == "same-origin" or origin in allowed or ANY_HOST in allowed:
        return
    own = site in (None, "none") if origin is None else origin.partition("://")[2] == headers.get("host")
    if not own:
        raise CrossSite((origin or "another site")[:MAX_TEXT])


class HostCheck:
    """Refuses requests by their Host; prevents DNS rebinding.

    In a DNS rebinding attack a web page lets its own host name resolve to this machine, and a browser that reaches it
    then lets the page read all answers. So names must be known: localhost, the name to listen on, and the allowed ones.
    An address cannot be bent: any is allowed, but of a gateway for its own machine only those of loopback. A client
    that is no browser need not send a Host.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self._names = {"localhost", settings.host.lower(), *map(str.lower, settings.allowed_hosts)}
        self._loopback = settings.access == "loopback"

    def check(self, sent: Sequence[str]) -> None:
        """Raises Misdirected for a Host that is not allowed, and for several."""
        if ANY_HOST in self._names or not any(sent):
            return
        text = sent[0].lower()
        host = text if text.endswith("]") else text.rpartition(":")[0] or text
        name = host.strip("[]").removesuffix(".")
        address = _address(name)
        allowed = name in self._names or (address is not None and (address.is_loopback or not self._loopback))
        if len(sent) > 1 or not allowed:
            raise Misdirected(", ".join(sent)[:MAX_TEXT])


@lru_cache(maxsize=64)  # the same few are asked for again and again
def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address of this name; None if it is none."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
