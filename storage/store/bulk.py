"""Many calls of the store: at the same time, since thousands one after the other would take minutes, and deletions of
everything but some keys.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from storage.store import Store

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
