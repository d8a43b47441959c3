"""Access control: API keys and their scopes, or the Host of the request where no keys are required."""

import ipaddress
from collections.abc import Mapping, Set
from datetime import UTC, datetime

from starlette.datastructures import Headers
from starlette.types import Scope as Connection

from app.codecs.base import MAX_TEXT
from app.errors import Forbidden, Misdirected, Unauthenticated
from app.settings import GatewaySettings
from workers.errors import StoreUnavailable
from workers.repositories.api_keys import ApiKey, ApiKeys, Scope, find

KEY_ID = "halfmoon.key"
"""Key of the ASGI scope: id of the API key of the request."""
SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer hm_…`; keys are made by `halfmoon keys create`."},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key, for clients that cannot send the other header."},
}

Scopes = frozenset[Scope]
_ANY_SCOPE = frozenset(Scope)
_READ_METHODS = frozenset({"GET", "HEAD"})
_WRITE_SCOPES: Mapping[str, Scopes] = {
    "datasets": frozenset({Scope.TRAIN}),
    "jobs": frozenset({Scope.TRAIN}),
    "models": frozenset(),
    "predictions": frozenset({Scope.PREDICT}),
    "suggestions": frozenset({Scope.TRAIN}),
    "inference": frozenset({Scope.PREDICT}),
    "evaluations": frozenset({Scope.PREDICT, Scope.TRAIN}),
}
_READ_SCOPES: Mapping[str, Scopes] = {**_WRITE_SCOPES, "models": frozenset({Scope.PREDICT, Scope.TRAIN}), "metrics": _ANY_SCOPE}


def scopes_for(tag: str, method: str) -> Scopes | None:
    """The scopes of which a key needs one for a call; None if no key is needed. The scope admin allows every call."""
    if tag == "health":
        return None
    table = _READ_SCOPES if method in _READ_METHODS else _WRITE_SCOPES
    return table.get(tag, frozenset()) | {Scope.ADMIN}


class Access:
    """Decides who may call, by the setting ``access``.

    - keys: a caller needs a valid key that has a scope of the call.
    - loopback: callers on this machine need no key. The Host of a request must be a name of this machine, which prevents DNS rebinding.
    - anyone: no caller needs a key.

    Keys are kept in memory, so a check reads no store. ``refresh`` reads them again.
    """

    def __init__(self, keys: ApiKeys, settings: GatewaySettings) -> None:
        self._keys = keys
        self._requires_key = settings.access == "keys"
        self._metrics_require_key = self._requires_key and not settings.public_metrics
        self._hosts = {"localhost", settings.host.lower()} if settings.access == "loopback" else None
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

        Raises Unauthenticated and Forbidden where keys are required, StoreUnavailable before they were read, and Misdirected for a Host that
        is not a name of this machine.
        """
        scopes = scopes_for(tag, connection["method"])
        if scopes is not None and self._hosts is not None:
            _check_host(Headers(scope=connection).get("host", ""), self._hosts)
        if scopes is None or not (self._metrics_require_key if tag == "metrics" else self._requires_key):
            return
        text = _key_of(Headers(scope=connection))
        if text is None:
            raise Unauthenticated("a key is required: Authorization: Bearer …, or X-API-Key", sent=False)
        if self._valid is None:
            raise StoreUnavailable("the keys could not be read yet")
        key = find(text, self._valid, datetime.now(UTC))
        if key is None:
            raise Unauthenticated("the key is not valid, or no longer valid", sent=True)
        connection[KEY_ID] = key.id
        if scopes.isdisjoint(key.scopes):
            raise Forbidden(key.scopes, sorted(scopes))


def _key_of(headers: Headers) -> str | None:
    """The key that a request sends, if any."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")


def _check_host(sent: str, names: Set[str]) -> None:
    """Raises Misdirected for a Host that is not a name of this machine; prevents DNS rebinding.

    In a DNS rebinding attack a web page lets its own host name resolve to this machine, and a browser here then lets the page read all answers.
    A client that is no browser need not send a Host.
    """
    host = sent.lower() if sent.endswith("]") else sent.lower().rpartition(":")[0] or sent.lower()
    name = host.strip("[]")
    if sent and name not in names and not _is_loopback_address(name):
        raise Misdirected(sent[:MAX_TEXT])


def _is_loopback_address(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
