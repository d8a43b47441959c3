"""Who may call what: API keys in front of the routes, unless anyone may."""

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
"""Where a connection carries the id of the key that it was let in with."""
SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer hm_…`; keys are made by `halfmoon keys create`."},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key, for clients that cannot send the other."},
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
    """The scopes of which one lets a call of this kind in; None: no key is needed. What is not in a table is for admin alone, who may do all."""
    if tag == "health":
        return None
    table = _READ_SCOPES if method in _READ_METHODS else _WRITE_SCOPES
    return table.get(tag, frozenset()) | {Scope.ADMIN}


class Access:
    """The keys of a store as they were a moment ago; ``refresh`` looks again. Asking costs neither the store nor a thread anything."""

    def __init__(self, keys: ApiKeys, settings: GatewaySettings) -> None:
        self._keys = keys
        self._needed = settings.access == "keys"
        self._metrics_needed = self._needed and not settings.public_metrics
        self._names = {"localhost", settings.host.lower()} if settings.access == "loopback" else None
        self._valid: dict[str, ApiKey] | None = None

    @property
    def known(self) -> bool:
        """Whether it can be told who may call."""
        return not self._needed or self._valid is not None

    def refresh(self) -> None:
        """Learn of new and of revoked keys; raises StoreUnavailable, and then those known before stay."""
        if self._needed:
            self._valid = {listed.key.id: listed.key for listed in self._keys.every() if not listed.revoked}

    def authorize(self, connection: Connection, tag: str) -> None:
        """Let a call pass and note who makes it.

        Raises Unauthenticated, Forbidden, StoreUnavailable while no keys could be read, and Misdirected where anyone on this machine may call.
        """
        may = scopes_for(tag, connection["method"])
        if may is not None and self._names is not None:
            _check_name(Headers(scope=connection).get("host", ""), self._names)
        if may is None or not (self._metrics_needed if tag == "metrics" else self._needed):
            return
        text = _sent(Headers(scope=connection))
        if text is None:
            raise Unauthenticated("a key is needed: Authorization: Bearer …, or X-API-Key", sent=False)
        if self._valid is None:
            raise StoreUnavailable("the keys could not be read yet")
        key = find(text, self._valid, datetime.now(UTC))
        if key is None:
            raise Unauthenticated("the key is not valid, or not any more", sent=True)
        connection[KEY_ID] = key.id
        if may.isdisjoint(key.scopes):
            raise Forbidden(key.scopes, sorted(may))


def _sent(headers: Headers) -> str | None:
    """The key that a request carries, if any."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")


def _check_name(sent: str, names: Set[str]) -> None:
    """Raises Misdirected for a Host that this machine does not call itself.

    A page from elsewhere may have its own name point to this machine, and a browser on it would then let the page read all answers.
    What is no browser need not send any.
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
