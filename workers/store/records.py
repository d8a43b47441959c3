"""Records in the store: written once as JSON, read back validated."""

from typing import TypeVar

from workers.contract import Record
from workers.store import KeyMissing, Store

R = TypeVar("R", bound=Record)


def create(store: Store, key: str, record: Record) -> bool:
    """Write a record that must not exist yet; false if one does."""
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
