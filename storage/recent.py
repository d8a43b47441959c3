"""Dictionaries that forget."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A dictionary that forgets the entry that was set longest ago, beyond so many entries or beyond ``most`` of their
    ``size`` together. The last one stays.
    """

    def __init__(self, most: int, size: Callable[[V], int] | None = None) -> None:
        super().__init__()
        self._most, self._size = most, size

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while (sum(map(self._size, self.values())) if self._size else len(self)) > self._most and len(self) > 1:
            self.popitem(last=False)


class LastUsed(Generic[V]):
    """Values by key; beyond ``most`` of them, or of their sizes together, the least recently used are dropped, but for
    the last.

    Threads may use it side by side.
    """

    def __init__(self, most: int, size: Callable[[V], int] | None = None) -> None:
        self._size_of = size or (lambda value: 1)
        self._kept = Recent[Hashable, V](most, size)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Sum of the sizes."""
        with self._lock:
            return sum(map(self._size_of, self._kept.values()))

    def find(self, key: Hashable) -> V | None:
        """The value of a key, if it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Hashable, value: V) -> V:
        """Keep the value of a key in place of the one it had."""
        with self._lock:
            self._kept[key] = value
        return value

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key; one that is not kept is made, by several threads at a time if several ask for it."""
        found = self.find(key)
        return self.keep(key, make() if found is None else found)
