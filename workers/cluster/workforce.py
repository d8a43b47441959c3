"""The workers of a cluster, asked for anew every few seconds, and the worker that reads each shard.

Nobody waits for the answer: a scheduler that hangs must not keep a job from its observer.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from distributed import Client

_SECONDS = 2.0
"""between two questions"""


class Workforce:
    """The workers of a cluster, as they were a few seconds ago."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.threads: Mapping[str, int] = client.nthreads()
        """number of threads by the address of the worker"""
        self._asked = time.monotonic()
        self._answer: Future[dict[str, int]] | None = None

    def look(self) -> bool:
        """Whether an answer has come since the last look that is another than before.

        One that names no worker says nothing.
        """
        if self._answer is None:
            if time.monotonic() - self._asked > _SECONDS:
                loop: Any = self._client.loop
                self._answer = asyncio.run_coroutine_threadsafe(self._count(), loop.asyncio_loop)
            return False
        if not self._answer.done():
            return False
        answer, self._answer, self._asked = self._answer, None, time.monotonic()
        found = {} if answer.exception() else answer.result()
        changed = bool(found) and found != self.threads
        self.threads = found if changed else self.threads
        return changed

    async def _count(self) -> dict[str, int]:
        scheduler: Any = self._client.scheduler
        return dict(await scheduler.ncores())


def placement(held: Sequence[str], threads: Mapping[str, int]) -> list[str]:
    """The worker of each shard; ``held`` names the one that has it now, or none (""), ``threads`` counts the threads of
    each.

    A shard moves where its worker has gone, or has more shards than its threads' part of them, rounded up.
    """
    total, counts = max(1, sum(threads.values())), Counter[str]()
    most = {worker: -(-len(held) * count // total) for worker, count in threads.items()}
    found = []
    for worker in held:
        stays = worker in threads and counts[worker] < most[worker]
        found.append(worker if stays else "")
        counts[found[-1]] += 1
    for number, worker in enumerate(found):
        if not worker:
            found[number] = max(threads, key=lambda each: most[each] - counts[each])
            counts[found[number]] += 1
    return found
