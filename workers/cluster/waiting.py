"""How a job waits for the cluster: its observer is asked now and then, what is lost on the way is waited for again, and failures get a name."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import wait as wait_for_threads
from contextlib import contextmanager, suppress
from typing import Any

from distributed import Client, Future, wait

from core.progress import Checkpoint
from workers.errors import ClusterUnavailable

_PATIENCE = 0.1
"""seconds between two looks at the observer while others work"""


class Waiting:
    """Waits for what the workers of a cluster compute."""

    def __init__(self, client: Client, checkpoint: Checkpoint) -> None:
        """``checkpoint`` is called now and then; what it raises ends the waiting."""
        self._client, self._checkpoint = client, checkpoint

    def gathered(self, futures: list[Future[Any]], given_up: Callable[[], bool] = lambda: False) -> list[Any] | None:
        """What these compute; None if ``given_up`` says that others must. Raises ClusterUnavailable, and what the checkpoint does."""
        values = None
        while values is None:
            if not self._wait(futures, given_up):
                return None
            values = self._fetched(futures)
        return values

    def look(self, futures: list[Future[Any]]) -> None:
        """Call the checkpoint; raises ClusterUnavailable where these will never be computed."""
        self._checkpoint()
        if any(future.cancelled() for future in futures) or self._client.status != "running":
            raise ClusterUnavailable("the scheduler of the cluster has ended, or has lost this job")

    def _wait(self, futures: list[Future[Any]], given_up: Callable[[], bool]) -> bool:
        """Return when all have been computed, if only for a moment: a worker that dies takes with it what nobody has fetched. False: others must."""
        while True:
            self.look(futures)
            if given_up():
                return False
            with told(), suppress(TimeoutError), self._client.as_current():
                wait(futures, timeout=_PATIENCE)
                return True

    def _fetched(self, futures: list[Future[Any]]) -> list[Any] | None:
        """The values; None if one was lost on the way, and is computed again."""
        loop: Any = self._client.loop
        fetching = asyncio.run_coroutine_threadsafe(self._client.gather(futures, asynchronous=True), loop.asyncio_loop)
        try:
            while True:
                wait_for_threads([fetching], _PATIENCE)
                if fetching.done():
                    with told():
                        return list(fetching.result())
                self.look(futures)
                if not all(future.done() for future in futures):
                    return None
        finally:
            fetching.cancel()


@contextmanager
def told() -> Iterator[None]:
    """What Dask raises becomes ClusterUnavailable, and so does what a worker's system refuses it. What else tasks raise stays as it is."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in ("distributed", "tornado", "concurrent", "asyncio"):
            raise ClusterUnavailable(f"the cluster failed: {type(error).__name__}: {error}") from error
        raise
