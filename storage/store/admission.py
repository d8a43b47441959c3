"""Admission: conditions that a store must meet before it is used.

store.json  id of the store, and the version of its format; created by the first process that uses the store, replaced
by the first of a newer format

Format 1 is that of stores without this record. Format 2 differs by the record alone, so an older store is read as it
is.
"""

from storage.errors import CannotStart
from storage.names import new_id
from storage.records import Record
from storage.store import Store, json_records

FORMAT = 2
"""Version of the format that this release writes. It is raised when older releases would misread what a newer one has
written. A new field that may be passed over is no such thing: records keep fields that a release does not know."""
_KEY = "store.json"


class StoreRecord(Record):
    """The record of a store about itself: ``store.json``."""

    id: str
    format: int


def admit(store: Store) -> str:
    """The id of a store that may be used. Raises CannotStart where it must not be used, and StoreUnavailable."""
    check_format(store)
    check_first_writer(store)
    json_records.create(store, _KEY, StoreRecord(id=new_id("store"), format=FORMAT))
    found = json_records.read(store, _KEY, StoreRecord)
    if found.format < FORMAT:
        # from now on older releases, which would misread what this one writes, refuse the store
        store.replace(_KEY, json_records.encode(found.model_copy(update={"format": FORMAT})))
    return found.id


def check_format(store: Store) -> None:
    """Raises CannotStart for a store that a newer release has written; StoreUnavailable."""
    found = json_records.find(store, _KEY, StoreRecord)
    if found is not None and found.format > FORMAT:
        raise CannotStart(
            f"the store has format {found.format}, which a newer version of halfmoon has written; this one reads "
            f"formats up to {FORMAT}: "
            "install that version, or choose another store"
        )


def check_first_writer(store: Store) -> None:
    """Raises CannotStart for a store that lets a key be created twice, on which jobs would be run and published twice.

    StoreUnavailable.
    """
    key = f"admission/{new_id('probe')}"
    first, second = store.create(key, b"1"), store.create(key, b"2")
    kept = store.read(key)
    store.delete(key)
    if not first or second or kept != b"1":
        raise CannotStart(
            "the store lets a second writer replace what the first has created: it does not support conditional "
            "writes (If-None-Match: *), "
            "so it cannot be used"
        )
