"""Records in the store: created once as JSON, validated when they are read."""

from typing import TypeVar

from workers.contract import Record
from workers.store import KeyMissing, Store

R = TypeVar("R", bound=Record)


def create(store: Store, key: str, record: Record) -> bool:
    """Store a record under a new key; false, and nothing changed, if the key exists."""
    return store.create(key, encode(record))


def encode(record: Record) -> bytes:
    """A record as the bytes that are stored."""
    return record.model_dump_json().encode()


def read(store: Store, key: str, kind: type[R]) -> R:
    """The record under a key; raises KeyMissing."""
    return kind.model_validate_json(store.read(key))


def find(store: Store, key: str, kind: type[R]) -> R | None:
    """The record under a key, or None."""
    try:
        return read(store, key, kind)
    except KeyMissing:
        return None
