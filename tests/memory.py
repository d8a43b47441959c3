"""Memory that a block takes, by Python's own count of what it allocates."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Memory:
    """Reserved bytes, and the most that was held."""

    def __init__(self) -> None:
        self.reserved = self.peak = 0

    def reserve(self, size: int) -> None:
        self.reserved += size


@contextmanager
def measured() -> Iterator[Memory]:
    memory = Memory()
    tracemalloc.start()
    try:
        yield memory
        memory.peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
