"""Whether the store may be used: before its admission, and while it is not bound to the queue, a gateway accepts and
repairs no job."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from redis import Redis

from storage.errors import CannotStart, QueueUnavailable, Unavailable
from storage.store import Store
from storage.store.admission import admit
from storage.upkeep.binding import Binding

_START_SECONDS = 20.0
"""Seconds that a start waits for the store. A gateway whose store hangs starts all the same, and is not ready."""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_SECONDS = 1.0


class Admission:
    """Admission of the store of one gateway, and its binding to the queue.

    ``problem`` says why jobs are not accepted; None if they are.
    """

    def __init__(self, store: Store, redis: Redis, queue: str) -> None:
        self.problem: str | None = "the store was not looked at yet"
        self._store = store
        self._redis = redis
        self._queue = queue
        self._binding: Binding | None = None

    def start(self) -> None:
        """Look for the first time.

        Raises CannotStart for a store that must not be used; one that does not answer is looked at again later.
        """
        refused: list[CannotStart] = []

        def look() -> None:
            try:
                self._look()
            except CannotStart as error:
                refused.append(error)
            except Unavailable as error:
                self.problem = str(error)

        thread = threading.Thread(target=look, name="admission", daemon=True)
        thread.start()
        thread.join(_START_SECONDS)
        if refused:
            raise refused[0]

    def renew(self) -> None:
        """Look again, every some seconds. Raises Unavailable."""
        try:
            self._look()
        except CannotStart as error:
            if self.problem != str(error):
                _log.error("no job is accepted", error=str(error))
            self.problem = str(error)
        except Unavailable as error:
            # what was bound stays bound while one of the two is away
            if self._binding is None or not self._binding.bound:
                self.problem = str(error)
            raise

    def check(self) -> None:
        """Raises QueueUnavailable unless jobs are accepted."""
        if self.problem is not None:
            raise QueueUnavailable(self.problem)

    def when_bound(self, function: Callable[[], object]) -> Callable[[], None]:
        """The function, which does nothing while jobs are not accepted."""

        def call() -> None:
            if self.problem is None:
                function()

        return call

    def release(self) -> None:
        """Let the queue be free for another store; a failure does not matter any more when the gateway stops."""
        if self._binding is not None:
            with suppress(Unavailable):
                self._binding.release()

    def _look(self) -> None:
        if self._binding is None:
            self._binding = Binding(self._store, admit(self._store), self._redis, self._queue)
        if self._binding.bound:
            self._binding.renew()
        if not self._binding.bound:
            self._binding.bind()
        self.problem = None


class StoreProbe:
    """Remembers the last answer of ``probe`` for a second. Callers that come meanwhile wait for it."""

    def __init__(self, probe: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._clock = clock
        self._lock = threading.Lock()
        self._writable = False
        self._until = float("-inf")

    def writable(self) -> bool:
        """Whether the store could be written within the last second."""
        with self._lock:
            if self._clock() >= self._until:
                self._writable = self._probe()
                self._until = self._clock() + _SECONDS
            return self._writable
