"""Calls of the store at the same time: one after the other, thousands of them would take minutes where each takes milliseconds."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_THREADS = 32


def in_parallel(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What the function returns for each of the items, in their order. It may raise what the function raises."""
    waiting = list(items)
    if len(waiting) < 2:
        yield from map(function, waiting)
        return
    with ThreadPoolExecutor(min(_THREADS, len(waiting)), "store") as threads:
        try:
            yield from threads.map(function, waiting)
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
