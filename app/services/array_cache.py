"""Cache of arrays that take long to compute, bounded by their bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T", bound=tuple[Any, ...])


class ArrayCache:
    """Tuples of arrays by key; beyond ``most`` bytes the least recently used are dropped, but for the last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, tuple[Any, ...]] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What is kept under a key, else what ``compute`` returns. Concurrent callers may compute it twice."""
        with self._lock:
            found: Any = self._kept.get(key)
        if found is None:
            found = compute()
        with self._lock:
            self._kept[key] = found
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > self._most:
                self._kept.popitem(last=False)
        kept: T = found
        return kept


def _size(arrays: tuple[Any, ...]) -> int:
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
