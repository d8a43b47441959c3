"""API keys. A key is shown once, when it is made; the store has a digest, from which it cannot be recovered.

keys/{id}.json     scopes of the key, and the digest of its secret; created once
keys/{id}.revoked  the key is not valid any more; created once

A secret has 256 random bits. It cannot be guessed, and no dictionary helps, so its digest needs neither salt nor a slow
hash.
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

from storage.errors import NotFound
from storage.names import check_name, is_id, new_id
from storage.records import Record
from storage.store import Store, json_records

_MARK = "hm"
_SECRET_BYTES = 32
_RECORD, _REVOKED = ".json", ".revoked"


class Scope(StrEnum):
    """Scope of a key: the calls that it allows."""

    PREDICT = "predict"
    LABEL = "label"
    TRAIN = "train"
    ADMIN = "admin"


class KeyFacts(Record):
    """A key, without what is known of its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None


class ApiKey(KeyFacts):
    """A key without its secret: ``keys/{id}.json``."""

    sha256: str
    """digest of the secret"""


class Listed(NamedTuple):
    """A key and its present state."""

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
        """A new key, and the text that its owner sends, which is stored nowhere. Raises InvalidName."""
        secret = b32hexencode(secrets.token_bytes(_SECRET_BYTES)).decode().rstrip("=").lower()
        key = ApiKey(
            id=new_id("key"),
            name=check_name("key", name),
            scopes=sorted(scopes),
            sha256=_digest(secret),
            created_at=datetime.now(UTC),
            expires_at=expires_at,
        )
        json_records.create(self._store, f"keys/{key.id}{_RECORD}", key)
        return key, f"{_MARK}_{key.id}_{secret}"

    def revoke(self, id: str) -> None:
        """Make a key invalid, for good. Raises NotFound."""
        if not is_id("key", id) or not self._store.exists(f"keys/{id}{_RECORD}"):
            raise NotFound("key", id)
        self._store.create(f"keys/{id}{_REVOKED}", b"")

    def every(self) -> Iterator[Listed]:
        """All keys ever made, oldest first, except keys with an unreadable record: nobody may use them.

        The record of a key is read once; afterwards the listing alone is. A revocation is the name of a mark, so it
        counts whatever can be read.
        """
        names = self._store.children("keys")
        revoked = {name.removesuffix(_REVOKED) for name in names if name.endswith(_REVOKED)}
        for name in names:
            id = name.removesuffix(_RECORD)
            if id != name and is_id("key", id):
                key = self._read.get(id) or json_records.find_readable(self._store, f"keys/{name}", ApiKey)
                # a copy under another name must not outlive the revocation of the key
                if key is not None and key.id == id:
                    self._read[id] = key
                    yield Listed(key, id in revoked)


def expired(key: ApiKey, now: datetime) -> bool:
    """Whether the key has expired."""
    return key.expires_at is not None and key.expires_at <= now


def find(text: str, valid: Mapping[str, ApiKey], now: datetime) -> ApiKey | None:
    """The key that a client has sent, if it is among the ``valid`` ones (by id) and has not expired."""
    mark, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    key = valid.get(id)
    known = key is not None and hmac.compare_digest(_digest(secret), key.sha256)
    return key if key is not None and known and mark == _MARK and not expired(key, now) else None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
