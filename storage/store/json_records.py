"""Records in the store, created once as JSON and validated when they are read; and many calls of the store at the same
time, since thousands one after the other would take minutes.

Behind a record stands its checksum, in white space: every reader of JSON passes over it, those of earlier versions too,
and an editor that drops it does no harm.

A record that is not valid, or has another checksum, is damaged (StoreDamaged). Who lists records leaves it out: one
that cannot be read must not stop what the others need.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from zlib import crc32

from pydantic import ValidationError

from storage.errors import StoreDamaged
from storage.records import Record
from storage.store import KeyMissing, Store

T = TypeVar("T")
R = TypeVar("R")
THREADS = 128
"""calls at the same time: five thousand of ten milliseconds take half a second"""
_RUNS = 8
"""runs of items for each thread: to hand over one item at a time would cost more than a call of a quick store"""


def in_parallel(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of the function for the items, in their order. It may raise errors of the function."""
    waiting = list(items)
    if len(waiting) < 2:
        yield from map(function, waiting)
        return
    length = max(1, len(waiting) // (THREADS * _RUNS))
    runs = (waiting[start : start + length] for start in range(0, len(waiting), length))
    with ThreadPoolExecutor(min(THREADS, len(waiting)), "store") as threads:
        try:
            for results in threads.map(lambda run: [function(item) for item in run], runs):
                yield from results
        finally:
            threads.shutdown(wait=True, cancel_futures=True)


def delete_except(store: Store, prefix: str, keep: Set[str]) -> None:
    """Delete everything at and below a prefix except the keys in ``keep``."""
    if prefix in keep:
        return
    if not any(key.startswith(f"{prefix}/") for key in keep):
        store.delete(prefix)
        return
    for name in store.children(prefix):
        delete_except(store, f"{prefix}/{name}", keep)


RecordT = TypeVar("RecordT", bound=Record)


def create(store: Store, key: str, record: Record) -> bool:
    """Store a record under a new key; false, and nothing changed, if the key exists."""
    return store.create(key, encode(record))


def encode(record: Record) -> bytes:
    """A record as the bytes that are stored."""
    return sealed(record.model_dump_json().encode())


def sealed(text: bytes) -> bytes:
    """The text with its CRC-32 behind it, whose bits are blanks and tabs."""
    return text + f"{crc32(text):032b}".replace("0", " ").replace("1", "\t").encode()


def read(store: Store, key: str, kind: type[RecordT]) -> RecordT:
    """The record under a key; raises KeyMissing, StoreDamaged."""
    again = partial(read, store, key, kind)
    try:
        data = store.read(key)
        text = data.rstrip(b" \t")
        if data not in (text, sealed(text)):
            raise StoreDamaged(key)
        record = kind.model_validate_json(text)
    except ValidationError as error:
        raise store.damage.add(StoreDamaged(key, _detail(error)), again) from None
    except StoreDamaged as error:
        raise store.damage.add(error, again) from None
    except KeyMissing:
        store.damage.forget(key)
        raise
    store.damage.forget(key)
    return record


def find(store: Store, key: str, kind: type[RecordT]) -> RecordT | None:
    """The record under a key, or None; raises StoreDamaged."""
    try:
        return read(store, key, kind)
    except KeyMissing:
        return None


def find_readable(store: Store, key: str, kind: type[RecordT]) -> RecordT | None:
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
