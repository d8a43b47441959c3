"""Admission of a store, and its binding to its queue: a store serves one queue of one Redis, and a queue one store.

store.json in the store    id of the store, and the version of its format; created by the first process that uses the
                           store, replaced by the first of a newer format
queue.json in the store    id of the queue, and a number that every gateway changes every two seconds
{queue}:id in Redis        the same id
{queue}:store in Redis     id of the store; runs out ten seconds after the last gateway has renewed it

A gateway with a second Redis would find no lease of a running job there, and would have it run again. So it must not
start:

1. Redis and store name each other: they are bound.
2. Redis names another store: it is in use by that one. Once no gateway renews that, it is free.
3. Redis does not know the queue of the store: it was emptied, or it is another. While a gateway goes on changing
   ``queue.json``, and none of them tells this Redis, it is another. Otherwise nobody uses the former queue any more,
   and the store is bound to this one.

What Redis has lost, every gateway that is bound writes again. No clock is compared with that of another machine.

Format 1 is that of stores without ``store.json``. Format 2 differs by the record alone, so an older store is read as it
is.
"""

import secrets
import time
from collections.abc import Callable

from redis import Redis

from storage.errors import CannotStart, StoreDamaged
from storage.names import new_id
from storage.queue.connection import redis_errors
from storage.records import Record
from storage.store import Store, json_records

FORMAT = 2
"""Version of the format that this release writes. It is raised when older releases would misread what a newer one has
written. A new field that may be passed over is no such thing: records keep fields that a release does not know."""
_STORE_KEY = "store.json"


class StoreRecord(Record):
    """The record of a store about itself: ``store.json``."""

    id: str
    format: int


def admit(store: Store) -> str:
    """The id of a store that may be used. Raises CannotStart where it must not be used, and StoreUnavailable."""
    check_format(store)
    check_first_writer(store)
    json_records.create(store, _STORE_KEY, StoreRecord(id=new_id("store"), format=FORMAT))
    found = json_records.read(store, _STORE_KEY, StoreRecord)
    if found.format < FORMAT:
        # from now on older releases, which would misread what this one writes, refuse the store
        store.replace(_STORE_KEY, json_records.encode(found.model_copy(update={"format": FORMAT})))
    return found.id


def check_format(store: Store) -> None:
    """Raises CannotStart for a store that a newer release has written; StoreUnavailable."""
    found = json_records.find(store, _STORE_KEY, StoreRecord)
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


RENEW_SECONDS = 2.0
"""Seconds between two renewals."""
_STORE_TTL_SECONDS = 5 * RENEW_SECONDS
_WATCH_SECONDS = 3 * RENEW_SECONDS
_POLL_SECONDS = 0.2
_KEY = "queue.json"


class _BoundQueue(Record):
    """Queue of a store: ``queue.json``, which is replaced."""

    id: str
    beat: str
    """something else at every renewal"""


class Binding:
    """Binding of one process to a store and a queue. ``store_id`` comes from ``admit``."""

    def __init__(
        self,
        store: Store,
        store_id: str,
        redis: Redis,
        queue: str,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._store_id = store_id
        self._redis = redis
        self._queue = queue
        self._sleep = sleep
        self._clock = clock
        self._id: str | None = None

    @property
    def bound(self) -> bool:
        """Whether store and queue belong to each other, as far as is known."""
        return self._id is not None

    def bind(self) -> None:
        """Bind the store to the queue, for a gateway. It may watch for some seconds whether others use them.

        Raises CannotStart where they do, StoreUnavailable, RedisUnavailable.
        """
        self.check()
        known = self._read()
        if known is not None and self._get("id") != known.id:
            self._watch(known)
        # an id of its own for each Redis, so that a former one is never taken for the present one
        self._id = self._set_redis_id(new_id("queue"))
        self._write(self._id)
        self._name_store()

    def renew(self) -> None:
        """Renew the binding, and write the keys again that Redis has lost. A binding that others have changed ends:
        ``bound`` is false then.

        Raises StoreUnavailable, RedisUnavailable.
        """
        known = self._read()
        if self._id is None or (known is not None and known.id != self._id and known.id != self._get("id")):
            self._id = None
            return
        id = self._id if known is None else known.id
        # also while Redis is away: that the store is in use does not depend on it
        self._write(id)
        kept = self._set_redis_id(id) == id and self._get("store") in (None, self._store_id)
        self._id = id if kept else None
        if kept:
            self._name_store()

    @redis_errors()
    def release(self) -> None:
        """Let the queue be free for another store at once.

        Other gateways of this store take it again. Raises RedisUnavailable.
        """
        if self.bound:
            self._redis.delete(self._name("store"))

    def check(self) -> None:
        """Wait until Redis does not name another store any more; raises CannotStart if that goes on.

        A worker, which takes jobs that a gateway has enqueued, needs no more than that. Raises as ``bind``.
        """
        ends = self._clock() + _STORE_TTL_SECONDS + RENEW_SECONDS
        while self._get("store") not in (None, self._store_id):
            if self._clock() > ends:
                raise CannotStart(
                    f"the queue {self._queue!r} of this Redis is in use with another store; "
                    "give this installation another HALFMOON_QUEUE, Redis or HALFMOON_STORE_URL"
                )
            self._sleep(_POLL_SECONDS)

    def _watch(self, known: _BoundQueue) -> None:
        """Watch whether the store is in use with another queue than the queue of this Redis; raises CannotStart if it
        is.
        """
        ends = self._clock() + _WATCH_SECONDS
        while self._clock() <= ends:
            self._sleep(_POLL_SECONDS)
            now = self._read()
            if now is None or now.id == self._get("id"):
                return
        if now != known:
            raise CannotStart(
                "the store is in use with another Redis, or with another HALFMOON_QUEUE: a gateway there renews its "
                "binding; "
                "stop it first, or use the same Redis and queue"
            )

    def _write(self, id: str) -> None:
        self._store.replace(_KEY, json_records.encode(_BoundQueue(id=id, beat=secrets.token_hex(8))))

    @redis_errors()
    def _name_store(self) -> None:
        self._redis.set(self._name("store"), self._store_id, px=round(1000 * _STORE_TTL_SECONDS))

    def _read(self) -> _BoundQueue | None:
        try:
            return json_records.find(self._store, _KEY, _BoundQueue)
        except StoreDamaged:
            return None

    @redis_errors()
    def _set_redis_id(self, id: str) -> str:
        """Give the queue an id, unless it has one; returns the one that it has then."""
        self._redis.set(self._name("id"), id, nx=True)
        return self._get("id") or id

    @redis_errors()
    def _get(self, name: str) -> str | None:
        """What Redis has under a name of the queue: its ``id``, or the id of its ``store``."""
        found = self._redis.get(self._name(name))
        return found.decode() if isinstance(found, bytes) else None

    def _name(self, name: str) -> str:
        return f"{self._queue}:{name}"
