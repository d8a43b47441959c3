"""Records in the store: created once as JSON, validated when they are read.

A record that is not valid is damaged (StoreDamaged). Who lists records leaves it out: one that cannot be read must not
stop what the others need.
"""

from functools import partial
from typing import TypeVar

from pydantic import ValidationError

from storage.errors import StoreDamaged
from storage.records import Record
from storage.store import KeyMissing, Store

R = TypeVar("R", bound=Record)


def create(store: Store, key: str, record: Record) -> bool:
    """Store a record under a new key; false, and nothing changed, if the key exists."""
    return store.create(key, encode(record))


def encode(record: Record) -> bytes:
    """A record as the bytes that are stored."""
    return record.model_dump_json().encode()


def read(store: Store, key: str, kind: type[R]) -> R:
    """The record under a key; raises KeyMissing, StoreDamaged."""
    again = partial(read, store, key, kind)
    try:
        record = kind.model_validate_json(store.read(key))
    except ValidationError as error:
        raise store.damage.add(StoreDamaged(key, _detail(error)), again) from None
    except StoreDamaged as error:
        raise store.damage.add(error, again) from None
    except KeyMissing:
        store.damage.forget(key)
        raise
    store.damage.forget(key)
    return record


def find(store: Store, key: str, kind: type[R]) -> R | None:
    """The record under a key, or None; raises StoreDamaged."""
    try:
        return read(store, key, kind)
    except KeyMissing:
        return None


def find_readable(store: Store, key: str, kind: type[R]) -> R | None:
    """The record under a key; None if there is none that can be read."""
    try:
        return find(store, key, kind)
    except StoreDamaged:
        return None


def _detail(error: ValidationError) -> str:
    """The fault of a record, in a few words."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"it is not a valid record: {field + ': ' if field else ''}{first['msg']}"
