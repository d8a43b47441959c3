"""The simulated store and Redis: their promises, and nothing more."""

import hashlib
import re
from collections import Counter, UserDict, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import redis.exceptions

from benchmarks.simulation.world import World
from storage.errors import RedisUnavailable, StoreUnavailable
from storage.queue.leases import Leases
from storage.records import File, QueuePlace, Record
from storage.store import KeyMissing, json_records
from storage.store.keys import Damage

T = TypeVar("T")
R = TypeVar("R", bound=Record)
_MORE = b',"of_the_next_release":1}'
_GROWN = re.compile(r"jobs/[^/]+/(request|outcome)\.json|models/[^/]+/versions/\d+\.json|datasets/[^/]+/manifest\.json")
"""Records that say more in the next release."""
_ANY_PLACE = QueuePlace()
_decode: Any = Record.model_validate_json.__func__  # type: ignore[attr-defined]


class Content(UserDict[str, bytes]):
    """Bytes by key.

    It keeps the names below each prefix: to look for them among all keys would take a quarter of a run.
    """

    def __init__(self) -> None:
        self.changes = 0
        """times that a key came, changed or went"""
        self._names: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """number of keys at or below each name, by prefix"""
        self._sorted: dict[str, list[str]] = {}
        """the same names in order, of prefixes that were asked for since they changed"""
        super().__init__()

    def __setitem__(self, key: str, data: bytes) -> None:
        if key not in self.data:
            for prefix, name in _steps(key):
                names = self._names[prefix]
                if name not in names:
                    self._sorted.pop(prefix, None)
                names[name] += 1
        self.data[key] = data
        self.changes += 1

    def __delitem__(self, key: str) -> None:
        del self.data[key]
        for prefix, name in _steps(key):
            names = self._names[prefix]
            names[name] -= 1
            if not names[name]:
                del names[name]
                self._sorted.pop(prefix, None)
        self.changes += 1

    def add(self, key: str, data: bytes) -> bool:
        """Keep the bytes under a new key; false, and nothing changed, if it exists."""
        if key in self.data:
            return False
        self[key] = data
        return True

    def find(self, key: str) -> bytes | None:
        """The bytes under a key."""
        return self.data.get(key)

    def below(self, prefix: str) -> Sequence[str]:
        """Names one level below a prefix, sorted."""
        found = self._sorted.get(prefix)
        if found is None:
            found = self._sorted[prefix] = sorted(self._names.get(prefix, ()))
        return found

    def keys_below(self, prefix: str) -> Iterator[str]:
        """Keys below a prefix."""
        for name in self._names.get(prefix, ()):
            key = f"{prefix}/{name}"
            if key in self.data:
                yield key
            yield from self.keys_below(key)


@lru_cache(4_000)
def _steps(key: str) -> list[tuple[str, str]]:
    """Every prefix of a key, with the name that follows it."""
    parts = key.split("/")
    return [("/".join(parts[:place]), name) for place, name in enumerate(parts)]


class SimulatedStore:
    """A store (``storage.store.Store``) in a dict.

    ``create`` and ``replace`` are atomic; a deletion of many keys is not.
    """

    def __init__(self, world: World) -> None:
        self.content = Content()
        self.removed: dict[str, bytes] = {}
        """what was deleted first, by key"""
        self.next_release: set[str] = set()
        """processes of the next release: their records say more, which processes of this release do not know"""
        self.damage = Damage()
        self._world = world

    def create(self, key: str, data: bytes) -> bool:
        """See Store."""
        written = self._written(key, data)
        return self._call(f"create {key}", lambda: self.content.add(key, written))

    def replace(self, key: str, data: bytes) -> None:
        """See Store."""
        written = self._written(key, data)
        self._call(f"replace {key}", lambda: self.content.__setitem__(key, written))

    def read(self, key: str) -> bytes:
        """See Store."""
        found = self._call(f"read {key}", lambda: self.content.find(key))
        if found is None:
            raise KeyMissing(key)
        grown = self._world.process in self.next_release and _MORE in found
        return json_records.sealed(found.rstrip().replace(_MORE, b"}")) if grown else found

    def exists(self, key: str) -> bool:
        """See Store."""
        return self._call(f"exists {key}", lambda: key in self.content.data)

    def children(self, prefix: str, after: str | None = None) -> list[str]:
        """See Store."""
        return self._call(
            f"children {prefix} {after}", lambda: [name for name in self.below(prefix) if after is None or name > after]
        )

    def below(self, prefix: str) -> Sequence[str]:
        """Names one level below a prefix, sorted, without a call."""
        return self.content.below(prefix)

    def keys_below(self, prefix: str) -> list[str]:
        """Keys below a prefix, sorted, without a call."""
        return sorted(self.content.keys_below(prefix))

    def record(self, key: str, kind: type[R]) -> R | None:
        """The record under a key, of whichever release, without a call; None if there is none."""
        data = self.content.find(key)
        return None if data is None else _record(kind, data)

    def last_record(self, key: str, kind: type[R]) -> R | None:
        """The record under a key, or the one that was deleted first, without a call."""
        data = self.removed.get(key, self.content.get(key))
        return None if data is None else _record(kind, data)

    def delete(self, prefix: str) -> None:
        """See Store."""
        for key in sorted([*([prefix] if prefix in self.content else []), *self.keys_below(prefix)]):
            self._call(f"delete {key}", partial(self._remove, key))

    def add_file(self, key: str, data: bytes) -> File:
        """Store a file of an attempt, as ``upload`` does."""
        self._call(f"upload {key}", lambda: self.content.__setitem__(key, data))
        return self.file(key, data)

    def upload(self, key: str, path: Path) -> File:
        """See Store; the path can be read alone."""
        return self.add_file(key, path.read_bytes())

    def file(self, key: str, data: bytes) -> File:
        """The record of a file, without a call."""
        return File(key=key, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))

    def local(self, file: File) -> Any:
        """See Store; the returned object can be read alone."""
        data = self.read(file.key)
        return SimpleNamespace(read_bytes=lambda: data)

    def staging(self) -> Any:
        """Never called: attempts add their files by ``add_file``."""
        raise NotImplementedError

    remove_abandoned = writable = free = staging

    def _written(self, key: str, data: bytes) -> bytes:
        grown = self._world.process in self.next_release and _GROWN.fullmatch(key) is not None
        return json_records.sealed(data.rstrip().removesuffix(b"}") + _MORE) if grown else data

    def _remove(self, key: str) -> None:
        if key in self.content:
            # what comes to a deleted job later belongs to nobody
            self.removed.setdefault(key, self.content[key])
            del self.content[key]

    def _call(self, what: str, effect: Callable[[], T]) -> T:
        return self._world.call(what, effect, lambda: StoreUnavailable("the store is away"))


@lru_cache(4_000)
def decoded(kind: Any, data: bytes) -> Any:
    """A record of these bytes, which all may share: it cannot change. Raises ValidationError."""
    return _decode(kind, data)


def _record(kind: type[R], data: bytes) -> R:
    return cast(R, decoded(kind, data.replace(_MORE, b"}")))


class SimulatedRedis:
    """Keys with a time to live, as leases need them (``storage.queue.leases``), and a list of messages.

    It may lose all of it.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._keys: dict[str, tuple[str, float]] = {}
        self._messages: list[str] = []

    def set(self, key: str, value: str, *, px: int, nx: bool = False) -> bool | None:
        """See Redis."""

        def effect() -> bool | None:
            if nx and self._get(key) is not None:
                return None
            self._keys[key] = value, self._world.wall_of("redis") + px / 1000
            return True

        return self._call(f"set {key}", effect)

    def get(self, key: str) -> str | None:
        """See Redis."""
        return self._call(f"get {key}", lambda: self._get(key))

    def delete(self, *keys: str) -> None:
        """See Redis."""
        self._call(f"delete {keys[0]}", lambda: [self._keys.pop(key, None) for key in keys])

    def eval(self, script: str, n_keys: int, key: str, value: str) -> None:
        """The one script of leases: delete a key if its value is of this holder."""

        def effect() -> None:
            if (self._get(key) or "").startswith(f"{value} "):
                del self._keys[key]

        self._call(f"release {key}", effect)

    def push(self, message: str, at_front: bool) -> None:
        """Enqueue a message."""
        self._call(f"push {message}", lambda: self._messages.insert(0 if at_front else len(self._messages), message))

    def pop(self) -> str | None:
        """Take the next message."""
        return self._call("pop", lambda: self._messages.pop(0) if self._messages else None)

    def waiting(self) -> Set[str]:
        """All messages."""
        return self._call("waiting", lambda: set(self._messages))

    def lose_all(self) -> None:
        """As after a restart without its files."""

        def effect() -> None:
            self._keys.clear()
            self._messages.clear()

        self._call("lose all", effect)

    def _get(self, key: str) -> str | None:
        value, until = self._keys.get(key, ("", 0.0))
        return value if until > self._world.wall_of("redis") else None

    def _call(self, what: str, effect: Callable[[], T]) -> T:
        return self._world.call(f"redis {what}", effect, lambda: redis.exceptions.ConnectionError("away"))


class SimulatedQueue:
    """The queue (``storage.queue.queue.Queue``) on the simulated Redis."""

    def __init__(self, redis: SimulatedRedis) -> None:
        self._redis = redis

    def enqueue(self, job_id: str, place: QueuePlace = _ANY_PLACE, *, at_front: bool = False) -> None:
        """See Queue."""
        self._guarded(lambda: self._redis.push(job_id, at_front))

    def waiting(self) -> Set[str]:
        """See Queue."""
        return self._guarded(self._redis.waiting)

    def take(self) -> str | None:
        """The message that a worker gets next."""
        return self._guarded(self._redis.pop)

    def _guarded(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except redis.exceptions.RedisError as error:
            raise RedisUnavailable(str(error)) from error


class SimulatedState:
    """Leases (``storage.queue.leases``) on the simulated Redis.

    Progress and figures, which no state depends on, are forgotten.
    """

    def __init__(self, redis: Any) -> None:
        self.leases = Leases(redis, "q")

    def trace(self, job_id: str) -> list[Any]:
        """See RedisState."""
        return []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given, **named: None
