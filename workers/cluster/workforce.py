"""The workers of a cluster, asked for anew every few seconds, the worker that reads each shard, and waiting for them:
the observer is asked now and then, lost values are waited for again, failures get their names.

Nobody waits for the answer of who works: a scheduler that hangs must not keep a job from its observer.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import wait as wait_for_threads
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, wait

from core.progress import Checkpoint
from storage.errors import ClusterUnavailable

_SECONDS = 2.0
"""between two questions"""


class Workforce:
    """The workers of a cluster, as they were a few seconds ago."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.threads: Mapping[str, int] = client.nthreads()
        """number of threads by the address of the worker"""
        self._asked = time.monotonic()
        self._answer: ThreadFuture[dict[str, int]] | None = None

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


_PATIENCE = 0.1
"""seconds between two looks at the observer while others work"""


class Waiting:
    """Waits for the results of the workers of a cluster."""

    def __init__(self, client: Client, checkpoint: Checkpoint) -> None:
        """``checkpoint`` is called now and then; its errors end the waiting."""
        self._client, self._checkpoint = client, checkpoint

    def gathered(self, futures: list[Future[Any]], given_up: Callable[[], bool] = lambda: False) -> list[Any] | None:
        """The results of these futures.

        None if ``given_up`` says that others must. Raises ClusterUnavailable, and what the checkpoint does.
        """
        while True:
            # all are computed now, but a worker that dies takes with it what nobody has fetched
            if self._awaited(self._computed(futures), futures, given_up) is None:
                return None
            values = self._awaited(
                self._client.gather(futures, asynchronous=True),
                futures,
                lambda: not all(future.done() for future in futures),
            )
            if values is not None:
                return list(values)

    def look(self, futures: list[Future[Any]]) -> None:
        """Call the checkpoint; raises ClusterUnavailable where these will never be computed."""
        self._checkpoint()
        if any(future.cancelled() for future in futures) or self._client.status != "running":
            raise ClusterUnavailable("the scheduler of the cluster has ended, or has lost this job")

    def _awaited(
        self, steps: Coroutine[Any, Any, Any], futures: list[Future[Any]], given_up: Callable[[], bool]
    ) -> Any | None:
        """The result of the loop of the client; None if it is given up.

        No time-out is raised on the way: by its traceback and those who pass it on it would hold, in a circle, what all
        callers have in hand.
        """
        loop: Any = self._client.loop
        begun = asyncio.run_coroutine_threadsafe(steps, loop.asyncio_loop)
        try:
            while True:
                self.look(futures)
                if given_up():
                    return None
                wait_for_threads([begun], _PATIENCE)
                if begun.done():
                    with named_errors():
                        return begun.result()
        finally:
            begun.cancel()

    async def _computed(self, futures: list[Future[Any]]) -> bool:
        with self._client.as_current():
            computed = wait(futures)
        await computed
        return True


@contextmanager
def named_errors() -> Iterator[None]:
    """Turns the errors of Dask, and of the system of a worker, into ClusterUnavailable.

    Other errors of tasks stay as they are.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in (
            "distributed",
            "tornado",
            "concurrent",
            "asyncio",
        ):
            raise ClusterUnavailable(f"the cluster failed: {type(error).__name__}: {error}") from error
        raise
