"""Waits for the cluster: asks the observer now and then, waits again for lost values, and names failures."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import wait as wait_for_threads
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, wait

from core.progress import Checkpoint
from storage.errors import ClusterUnavailable

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
