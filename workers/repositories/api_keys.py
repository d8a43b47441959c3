"""API keys: who may call the service. A key is shown once, when it is made; what is kept cannot be turned back into it.

keys/{id}.json     what the key may do, and the digest of its secret; created once
keys/{id}.revoked  it is not valid any more; created once

A secret has 256 random bits, so nobody can guess it and its digest needs neither salt nor a slow hash: there is no dictionary to try.
"""

import hashlib
import hmac
import secrets
from base64 import b32hexencode
from collections.abc import Iterator, Mapping, Set
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import AwareDatetime

from workers.contract import Record
from workers.errors import NotFound
from workers.names import check_name, is_id, new_id
from workers.store import Store, records

_MARK = "hm"
_SECRET_BYTES = 32
_RECORD, _REVOKED = ".json", ".revoked"


class Scope(StrEnum):
    """What a key is for."""

    PREDICT = "predict"
    TRAIN = "train"
    ADMIN = "admin"


class ApiKey(Record):
    """A key without its secret: ``keys/{id}.json``."""

    id: str
    name: str
    scopes: list[Scope]
    sha256: str
    """of the secret"""
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None


class Listed(NamedTuple):
    """A key and what has become of it."""

    key: ApiKey
    revoked: bool

    def state(self, now: datetime) -> str:
        """``valid``, ``expired`` or ``revoked``."""
        if self.revoked:
            return "revoked"
        return "expired" if expired(self.key, now) else "valid"


class ApiKeys:
    """The keys of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, ApiKey] = {}

    def create(self, name: str, scopes: Set[Scope], expires_at: datetime | None = None) -> tuple[ApiKey, str]:
        """A new key, and the text that its owner sends, which is kept nowhere. Raises InvalidName."""
        secret = b32hexencode(secrets.token_bytes(_SECRET_BYTES)).decode().rstrip("=").lower()
        key = ApiKey(
            id=new_id("key"),
            name=check_name("key", name),
            scopes=sorted(scopes),
            sha256=_digest(secret),
            created_at=datetime.now(UTC),
            expires_at=expires_at,
        )
        records.create(self._store, f"keys/{key.id}{_RECORD}", key)
        return key, f"{_MARK}_{key.id}_{secret}"

    def revoke(self, id: str) -> None:
        """Make a key invalid, for good. Raises NotFound."""
        if not is_id("key", id) or not self._store.exists(f"keys/{id}{_RECORD}"):
            raise NotFound("key", id)
        self._store.create(f"keys/{id}{_REVOKED}", b"")

    def every(self) -> Iterator[Listed]:
        """All keys ever made, oldest first. Of a key that was read before, nothing but a name in the listing is looked at."""
        names = self._store.children("keys")
        revoked = {name.removesuffix(_REVOKED) for name in names if name.endswith(_REVOKED)}
        for name in names:
            id = name.removesuffix(_RECORD)
            if id != name:
                if id not in self._read:
                    self._read[id] = records.read(self._store, f"keys/{name}", ApiKey)
                yield Listed(self._read[id], id in revoked)


def expired(key: ApiKey, now: datetime) -> bool:
    """Whether the key's time is over."""
    return key.expires_at is not None and key.expires_at <= now


def find(text: str, valid: Mapping[str, ApiKey], now: datetime) -> ApiKey | None:
    """The key that a client has sent, if it is one of the ``valid`` (by id) and not expired."""
    mark, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    key = valid.get(id)
    known = key is not None and hmac.compare_digest(_digest(secret), key.sha256)
    return key if key is not None and known and mark == _MARK and not expired(key, now) else None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
