"""Dictionaries that forget."""

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

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
